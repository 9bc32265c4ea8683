/** Whether JavaScript has run out of stack, as functions that read all of a value do if it is nested too deeply. */
export const isStackOverflow = (error: unknown): boolean =>
  error instanceof RangeError && error.message.includes('call stack')
