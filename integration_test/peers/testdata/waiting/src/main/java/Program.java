import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Runs a limiter. Each line is a worker's name and a call; the answer is the name and what came of it. A worker is a thread. */
interface Program {
    String answer(String[] call) throws Exception;

    static void run(Program program) throws Exception {
        Map<String, ExecutorService> workers = new ConcurrentHashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] call = line.split(" ");
            workers.computeIfAbsent(call[0], name -> Executors.newSingleThreadExecutor()).execute(() -> {
                String answer;
                try {
                    answer = program.answer(call);
                } catch (Throwable e) {
                    answer = e.toString();
                }
                synchronized (System.out) {
                    System.out.println(call[0] + " " + answer);
                    System.out.flush();
                }
            });
        }
        System.exit(0);
    }
}
