/** Lines of servers for the operational log: bounded in length and number, without control characters. */
export type WriteLog = (severity: 'info' | 'warn', text: string) => void

/** Longest part of a line that is logged. */
export const maxLogBytes = 4_096
/** Maximum number of lines in a period. */
const maxLines = 100
const periodMs = 10_000

export class ServerLog {
  readonly #label: string
  readonly #write: WriteLog
  #periodEnd = 0
  #lines = 0
  #dropped = 0

  constructor(label: string, write: WriteLog) {
    this.#label = label
    this.#write = write
  }

  /** Logs a line of the server. */
  line(text: string): void {
    const now = performance.now()
    if (now >= this.#periodEnd) {
      this.flush()
      this.#periodEnd = now + periodMs
      this.#lines = 0
    }
    if (++this.#lines > maxLines) this.#dropped++
    else this.#write('info', `${this.#label}: ${printable(text)}`)
  }

  /** Logs what the host itself has to say about the server. */
  warn(text: string): void {
    this.#write('warn', `${this.#label}: ${printable(text)}`)
  }

  /** Says how many lines were left out. */
  flush(): void {
    if (this.#dropped > 0) this.#write('warn', `${this.#label}: ${this.#dropped} lines dropped`)
    this.#dropped = 0
  }
}

const printable = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
  text.trimEnd().replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, '�')
