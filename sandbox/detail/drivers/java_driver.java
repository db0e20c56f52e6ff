import java.io.DataInputStream;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/**
 * Starts the main of the program that stands with its tests in Candidate.java, whatever its class is called, with assertions on.
 * Asks for a nonce only after that one has come back, and gives it back: a program that ends itself early leaves it unsaid.
 */
public final class Main {
  private static Method tests() throws Exception {
    ClassLoader loader = Main.class.getClassLoader();
    loader.setDefaultAssertionStatus(true);
    Method found = null;
    try (JarFile jar = new JarFile("main.jar")) {
      for (JarEntry entry : Collections.list(jar.entries())) {
        String name = entry.getName();
        if (!name.endsWith(".class") || name.indexOf('$') >= 0 || name.equals("Main.class")) continue;
        try {
          Method main = Class.forName(name.substring(0, name.length() - 6).replace('/', '.'), false, loader).getDeclaredMethod("main", String[].class);
          if (found != null) throw new IllegalStateException("more than one class has a main");  // it might hide the tests'
          main.setAccessible(true);
          found = main;
        } catch (NoSuchMethodException another) {
          continue;
        }
      }
    }
    if (found == null) throw new NoSuchMethodException("no class has a main");
    return found;
  }

  /** FileDescriptor has no constructor for a number, and the judge's pipes cannot be opened by name. */
  private static FileDescriptor descriptor(int number) throws Exception {
    Field instance = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
    instance.setAccessible(true);
    sun.misc.Unsafe memory = (sun.misc.Unsafe) instance.get(null);
    FileDescriptor out = new FileDescriptor();
    memory.putInt(out, memory.objectFieldOffset(FileDescriptor.class.getDeclaredField("fd")), number);
    return out;
  }

  public static void main(String[] arguments) throws Throwable {
    try {
      tests().invoke(null, (Object) arguments);
    } catch (InvocationTargetException thrown) {
      throw thrown.getCause();
    }
    DataInputStream questions = new DataInputStream(new FileInputStream(descriptor(3)));
    FileOutputStream answers = new FileOutputStream(descriptor(4));
    answers.write("\013\0\0\0t1:s5:ended".getBytes(StandardCharsets.ISO_8859_1));
    byte[] frame = new byte[51];
    questions.readFully(frame);
    String nonce = new String(frame, 19, 32, StandardCharsets.ISO_8859_1);
    answers.write(("\056\0\0\0t2:s4:dones32:" + nonce).getBytes(StandardCharsets.ISO_8859_1));
  }
}
