// One timer for the next time at which a state machine has to be woken.

export interface WakeTimer {
  /** Replaces the time; undefined: no wake-up. Only a timer with `keepsAlive` keeps the process alive. */
  set(wakeMs: number | undefined, nowMs: number, keepsAlive: boolean): void;
}

// setTimeout takes 31 bits. After an early wake-up the caller sets the timer again.
const maxDelayMs = 2 ** 31 - 1;

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
