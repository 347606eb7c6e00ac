// Answers dpaudit: a line {"dataset": [0, 1], "n": 2, "seed": 5} of stdin with a line {"outputs": [1, 0]} of stdout.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
)

// The mechanism: replace it by a call of your code.  This one counts the positive records and adds noise of the
// two-sided geometric law, so it is epsilon-DP.  An output is any value that has a JSON form.
func release(dataset any, epsilon float64, random *generator) (any, error) {
	records, isList := dataset.([]any)
	if !isList {
		return nil, fmt.Errorf("the dataset is no list")
	}
	count := 0
	for _, record := range records {
		if x, isNumber := record.(float64); isNumber && x > 0 {
			count++
		}
	}
	return count + random.geometric(epsilon) - random.geometric(epsilon), nil
}

// SplitMix64 of Steele, Lea & Flood 2014: with the seed of a request, its outputs can be repeated.
type generator struct{ state uint64 }

func (random *generator) uniform() float64 {
	random.state += 0x9E3779B97F4A7C15
	z := (random.state ^ random.state>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return float64((z^z>>31)>>11) / (1 << 53)
}

func (random *generator) geometric(epsilon float64) (count int) {
	for random.uniform() < math.Exp(-epsilon) {
		count++
	}
	return count
}

func answer(line []byte, epsilon float64) (any, error) {
	var request struct {
		Dataset any
		N       int
		Seed    uint64
	}
	if err := json.Unmarshal(line, &request); err != nil {
		return nil, err
	}
	random, outputs := generator{request.Seed}, make([]any, request.N)
	for i := range outputs {
		var err error
		if outputs[i], err = release(request.Dataset, epsilon, &random); err != nil {
			return nil, err
		}
	}
	return map[string]any{"outputs": outputs}, nil
}

func main() {
	epsilon := 1.0
	if len(os.Args) > 1 && os.Args[1] == "planted" {
		epsilon = 2 // half of the noise, which the audit must find
	}
	for input := bufio.NewReader(os.Stdin); ; {
		line, err := input.ReadBytes('\n')
		if err != nil {
			return
		}
		reply, err := answer(line, epsilon)
		if err == nil {
			line, err = json.Marshal(reply)
		}
		if err != nil {
			line, _ = json.Marshal(map[string]string{"error": err.Error()})
		}
		fmt.Println(string(line))
	}
}
