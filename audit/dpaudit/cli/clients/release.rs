//! Answers dpaudit: a line {"dataset": [0, 1], "n": 2, "seed": 5} of stdin with a line {"outputs": [1, 0]} of stdout.
use std::collections::HashMap;
use std::io::BufRead;

/// The mechanism: replace it by a call of your code.  This one counts the positive records and adds noise of the
/// two-sided geometric law, so it is epsilon-DP.  An output is any JSON; write a float with {:?}, which keeps its bits.
fn release(dataset: &Json, epsilon: f64, random: &mut Random) -> Result<String, String> {
    let records = if let Json::List(records) = dataset { records } else { return Err("the dataset is no list".into()) };
    let count = records.iter().filter(|record| matches!(record, Json::Number(x) if *x > 0.0)).count() as i64;
    Ok((count + random.geometric(epsilon) - random.geometric(epsilon)).to_string())
}

/// SplitMix64 of Steele, Lea & Flood 2014: with the seed of a request, its outputs can be repeated.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E3779B97F4A7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58476D1CE4E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D049BB133111EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn geometric(&mut self, epsilon: f64) -> i64 {
        std::iter::repeat_with(|| self.uniform()).take_while(|u| *u < (-epsilon).exp()).count() as i64
    }
}

#[allow(dead_code)] // your datasets may hold what those of the example do not
enum Json { Null, Bool(bool), Number(f64), Text(String), List(Vec<Json>), Map(HashMap<String, Json>) }

/// Read the JSON value at the start of `rest`, and leave what follows it.
fn read(rest: &mut &str) -> Result<Json, String> {
    *rest = rest.trim_start_matches([' ', ',', ':']);
    if let Some(inner) = rest.strip_prefix(['[', '{']) {
        let (is_list, mut list, mut map) = (rest.starts_with('['), vec![], HashMap::new());
        *rest = inner.trim_start();
        while !rest.starts_with([']', '}']) {
            match read(rest)? {
                item if is_list => list.push(item),
                Json::Text(key) => drop(map.insert(key, read(rest)?)),
                _ => return Err("a key is no text".into()),
            }
            *rest = rest.trim_start();
        }
        *rest = &rest[1..];
        return Ok(if is_list { Json::List(list) } else { Json::Map(map) });
    }
    if let Some(inner) = rest.strip_prefix('"') {
        let (mut text, mut letters) = (vec![], inner.chars());
        loop {
            match letters.next().ok_or("a text has no end")? {
                '"' => break,
                '\\' => text.push(match letters.next().ok_or("a text has no end")? {
                    'u' => u16::from_str_radix(&letters.by_ref().take(4).collect::<String>(), 16).unwrap_or(0xFFFD),
                    letter => match letter { 'n' => 10, 't' => 9, 'r' => 13, 'b' => 8, 'f' => 12, _ => letter as u16 },
                }),
                letter => text.extend_from_slice(letter.encode_utf16(&mut [0; 2])),
            }
        }
        *rest = letters.as_str();
        return Ok(Json::Text(String::from_utf16_lossy(&text)));
    }
    let (word, after) = rest.split_at(rest.find([' ', ',', ']', '}']).unwrap_or(rest.len()));
    *rest = after;
    match word {
        "null" => Ok(Json::Null),
        "true" | "false" => Ok(Json::Bool(word == "true")),
        _ => word.parse().map(Json::Number).map_err(|_| format!("{word} is no JSON")),
    }
}

fn answer(mut line: &str, epsilon: f64) -> Result<String, String> {
    let request = if let Json::Map(request) = read(&mut line)? { request } else { return Err("no request".into()) };
    let number = |key| if let Json::Number(x) = request[key] { x as u64 } else { 0 };
    let mut random = Random(number("seed"));
    let outputs = (0..number("n")).map(|_| release(&request["dataset"], epsilon, &mut random));
    Ok(format!("{{\"outputs\": [{}]}}", outputs.collect::<Result<Vec<_>, _>>()?.join(", ")))
}

fn main() {
    // With the argument `planted`, half of the noise, which the audit must find.
    let epsilon = if std::env::args().any(|word| word == "planted") { 2.0 } else { 1.0 };
    for line in std::io::stdin().lock().lines() {
        let failed = |why: String| format!("{{\"error\": \"{}\"}}", why.replace(['"', '\\'], "'"));
        println!("{}", answer(&line.unwrap(), epsilon).unwrap_or_else(failed));
    }
}
