// One timer for the next time at which a state machine has to be woken.

interface WakeTimer {
  /** Replaces the time; undefined: no wake-up. Only a timer with `keepsAlive` keeps the process alive. */
  set(wakeMs: number | undefined, nowMs: number, keepsAlive: boolean): void;
}

// A timer stands still while the machine is suspended, the clock of the times does not. After an early wake-up the caller sets it again.
const maxDelayMs = 5_000;

export function createWakeTimer(onWake: () => void): WakeTimer {
  let timer: NodeJS.Timeout | undefined;
  let timerMs: number | undefined;

  function wake(): void {
    timerMs = undefined;
    onWake();
  }

  return {
    set(wakeMs, nowMs, keepsAlive) {
      if (wakeMs !== timerMs) {
        clearTimeout(timer);
        timerMs = wakeMs;
        const delayMs = wakeMs === undefined ? undefined : Math.min(Math.max(Math.ceil(wakeMs - nowMs), 1), maxDelayMs);
        timer = delayMs === undefined ? undefined : setTimeout(wake, delayMs);
      }
      if (keepsAlive) timer?.ref();
      else timer?.unref();
    },
  };
}
