// Answers dpaudit: a line {"dataset": [0, 1], "n": 2, "seed": 5} of stdin with a line {"outputs": [1, 0]} of stdout.
import process from "node:process";
import { createInterface } from "node:readline";

// The mechanism: replace it by a call of your code.  This one counts the positive records and adds noise of the
// two-sided geometric law, so it is epsilon-DP.  An output is any value that has a JSON form.
function release(dataset, epsilon, uniform) {
  const geometric = () => {
    let count = 0;
    while (uniform() < Math.exp(-epsilon)) count++;
    return count;
  };
  return dataset.filter((record) => record > 0).length + geometric() - geometric();
}

// SplitMix64 of Steele, Lea & Flood 2014: with the seed of a request, its outputs can be repeated.
function generator(seed) {
  const bits = (number) => BigInt.asUintN(64, number);
  let state = BigInt(seed);
  return () => {
    state = bits(state + 0x9e3779b97f4a7c15n);
    let z = bits((state ^ (state >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = bits((z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    return Number((z ^ (z >> 31n)) >> 11n) / 2 ** 53;
  };
}

const epsilon = process.argv[2] === "planted" ? 2 : 1; // planted: half of the noise, which the audit must find

createInterface({ input: process.stdin }).on("line", (line) => {
  let answer;
  try {
    const { dataset, n, seed } = JSON.parse(line);
    const uniform = generator(seed);
    answer = { outputs: Array.from({ length: n }, () => release(dataset, epsilon, uniform)) };
  } catch (error) {
    answer = { error: String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
