import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Answers dpaudit: a line {"dataset": [0, 1], "n": 2, "seed": 5} of stdin with a line {"outputs": [1, 0]}. */
public class Release {
    /**
     * The mechanism: replace it by a call of your code. This one counts the positive records and adds noise of the
     * two-sided geometric law, so it is epsilon-DP. An output is null, a number, a text, a Boolean, or a list of these.
     */
    static Object release(Object dataset, double epsilon, SplittableRandom random) {
        long count = ((List<?>) dataset).stream().filter(record -> record instanceof Double x && x > 0).count();
        return count + geometric(epsilon, random) - geometric(epsilon, random);
    }

    static long geometric(double epsilon, SplittableRandom random) {
        long count = 0;
        while (random.nextDouble() < Math.exp(-epsilon)) {
            count++;
        }
        return count;
    }

    static final Pattern WORD = Pattern.compile("\"(?:[^\"\\\\]++|\\\\.)*+\"|[^\\[\\]{}:,\"\\s]+|[\\[\\]{}]");
    static final Pattern ESCAPE = Pattern.compile("\\\\(?:u(....)|.)");

    /** Reads the JSON value that begins with the word that was found last. */
    static Object read(Matcher words) {
        String word = words.group();
        if (word.equals("[")) {
            List<Object> list = new ArrayList<>();
            while (words.find() && !words.group().equals("]")) {
                list.add(read(words));
            }
            return list;
        } else if (word.equals("{")) {
            Map<Object, Object> map = new HashMap<>();
            while (words.find() && !words.group().equals("}")) {
                Object key = read(words);
                words.find();
                map.put(key, read(words));
            }
            return map;
        } else if (word.startsWith("\"")) {
            Matcher escapes = ESCAPE.matcher(word.substring(1, word.length() - 1));
            return escapes.replaceAll(escape -> Matcher.quoteReplacement(escape.group(1) == null
                ? escape.group().translateEscapes() : "" + (char) Integer.parseInt(escape.group(1), 16)));
        }
        return switch (word) {
            case "null" -> null;
            case "true", "false" -> word.equals("true");
            default -> Double.valueOf(word);
        };
    }

    static String written(Object value) {
        if (value instanceof List<?> list) {
            return list.stream().map(Release::written).collect(Collectors.joining(", ", "[", "]"));
        }
        return value instanceof String ? "\"" + ((String) value).replaceAll("[\\\\\"]", "\\\\$0") + "\"" : "" + value;
    }

    public static void main(String[] words) throws Exception {
        double epsilon = words.length > 0 && words[0].equals("planted") ? 2 : 1; // planted: half of the noise
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line; (line = input.readLine()) != null; System.out.flush()) {
            try {
                Matcher found = WORD.matcher(line);
                found.find();
                Map<?, ?> request = (Map<?, ?>) read(found);
                SplittableRandom random = new SplittableRandom(((Double) request.get("seed")).longValue());
                List<Object> outputs = new ArrayList<>();
                for (double i = 0; i < (Double) request.get("n"); i++) {
                    outputs.add(release(request.get("dataset"), epsilon, random));
                }
                System.out.println("{\"outputs\": " + written(outputs) + "}");
            } catch (RuntimeException error) {
                System.out.println("{\"error\": " + written("" + error) + "}");
            }
        }
    }
}
