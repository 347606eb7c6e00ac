// Answers dpaudit: a line {"dataset": [0, 1], "n": 2, "seed": 5} of stdin with a line {"outputs": [1, 0]} of stdout.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

struct Json {
    enum { Null, Boolean, Number, Text, List, Map } kind = Null;
    double number = 0;              // 1 for true
    std::string text;               // as JSON writes it, between the quotation marks
    std::vector<Json> items, keys;  // a map has as many keys as items
};

// SplitMix64 of Steele, Lea & Flood 2014: with the seed of a request, its outputs can be repeated.
struct Random {
    std::uint64_t state;

    double uniform() {
        state += 0x9E3779B97F4A7C15;
        std::uint64_t z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
        return static_cast<double>((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
    }

    long geometric(double epsilon) {
        for (long count = 0;; ++count)
            if (uniform() >= std::exp(-epsilon)) return count;
    }
};

// The mechanism: replace it by a call of your code.  This one counts the positive records and adds noise of the
// two-sided geometric law, so it is epsilon-DP.  An output is any JSON; write a float with 17 digits.
std::string release(const Json& dataset, double epsilon, Random& random) {
    if (dataset.kind != Json::List) throw std::runtime_error("the dataset is no list");
    long count = 0;
    for (const Json& record : dataset.items) count += record.kind == Json::Number && record.number > 0;
    count += random.geometric(epsilon);
    return std::to_string(count - random.geometric(epsilon));
}

// Read the JSON value at `at`, and move `at` behind it.
Json read(const char*& at) {
    Json found;
    at += std::strspn(at, " ,:");
    if (*at == '[' || *at == '{') {
        found.kind = *at++ == '[' ? Json::List : Json::Map;
        while (at += std::strspn(at, " ,"), *at != ']' && *at != '}') {
            if (found.kind == Json::Map) found.keys.push_back(read(at));
            found.items.push_back(read(at));
        }
        ++at;
    } else if (*at == '"') {
        found.kind = Json::Text;
        for (++at; *at != '"'; ++at) {
            if (*at == '\\') found.text += *at++;
            if (*at == 0) throw std::runtime_error("a text has no end");
            found.text += *at;
        }
        ++at;
    } else {
        const std::string word(at, std::strcspn(at, " ,]}"));
        found.kind = word == "null" ? Json::Null : word == "true" || word == "false" ? Json::Boolean : Json::Number;
        found.number = found.kind == Json::Number ? std::stod(word) : word == "true";
        at += word.size();
    }
    return found;
}

int main(int count, char** words) {
    const double epsilon = count > 1 && std::string(words[1]) == "planted" ? 2 : 1;  // planted: half of the noise
    for (std::string line; std::getline(std::cin, line);) {
        try {
            std::map<std::string, Json> request;
            const char* at = line.c_str();
            const Json found = read(at);
            for (std::size_t i = 0; i < found.keys.size(); ++i) request[found.keys[i].text] = found.items[i];
            const Json& dataset = request["dataset"];
            Random random{static_cast<std::uint64_t>(request["seed"].number)};
            std::string outputs = release(dataset, epsilon, random);
            for (double n = request["n"].number; n > 1; --n) outputs += ", " + release(dataset, epsilon, random);
            std::cout << "{\"outputs\": [" << outputs << "]}" << std::endl;
        } catch (const std::exception& error) {
            std::cout << "{\"error\": \"" << error.what() << "\"}" << std::endl;
        }
    }
}
