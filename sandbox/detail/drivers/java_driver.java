import java.io.DataInputStream;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/**
 * Starts the main of the program that stands with its tests in a package of its own, whatever its class is called, with assertions on.
 * Asks for a nonce only after that one has come back, and gives it back: a program that ends itself early leaves it unsaid.
 * What else is called main, wherever it stands and whatever it takes, might hide the tests': then there is no run.
 */
public final class Main {
  private static Method tests() throws Exception {
    ClassLoader loader = Main.class.getClassLoader();
    loader.setDefaultAssertionStatus(true);
    Method found = null;
    try (JarFile jar = new JarFile("main.jar")) {
      for (JarEntry entry : Collections.list(jar.entries())) {
        String name = entry.getName();
        if (!name.endsWith(".class") || name.equals("Main.class")) continue;
        for (Method method : Class.forName(name.substring(0, name.length() - 6).replace('/', '.'), false, loader).getDeclaredMethods()) {
          if (!method.getName().equals("main") || !Modifier.isStatic(method.getModifiers())) continue;
          if (found != null) throw new IllegalStateException("there is more than one main");
          found = method;
        }
      }
    }
    if (found == null) throw new NoSuchMethodException("no class has a main");
    found.setAccessible(true);
    return found;
  }

  /** Whether the assertions of `tests` were on: a class that is initialised before it can turn them off. */
  private static boolean asserted(Class<?> tests) throws Exception {
    try {
      Field disabled = tests.getDeclaredField("$assertionsDisabled");
      disabled.setAccessible(true);
      return !disabled.getBoolean(null);
    } catch (NoSuchFieldException without) {
      return true;  // there is no assertion
    }
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
    Method tests = tests();
    try {
      tests.invoke(null, (Object) arguments);
    } catch (InvocationTargetException thrown) {
      throw thrown.getCause();
    }
    if (!asserted(tests.getDeclaringClass())) throw new IllegalStateException("the program turned assertions off");
    DataInputStream questions = new DataInputStream(new FileInputStream(descriptor(3)));
    FileOutputStream answers = new FileOutputStream(descriptor(4));
    answers.write("\013\0\0\0t1:s5:ended".getBytes(StandardCharsets.ISO_8859_1));
    byte[] frame = new byte[51];
    questions.readFully(frame);
    String nonce = new String(frame, 19, 32, StandardCharsets.ISO_8859_1);
    answers.write(("\056\0\0\0t2:s4:dones32:" + nonce).getBytes(StandardCharsets.ISO_8859_1));
  }
}
