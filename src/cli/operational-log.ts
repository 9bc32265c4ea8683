/**
 * What a running gateway tells its operator, on standard error: one line each, with `error: `,
 * `warning: ` or `bug: ` in front where something is wrong. The level can be changed while it runs
 * (POST /logging on the admin address).
 */
import type { Output } from './output.ts'

const ranks = { trace: 0, debug: 1, info: 2, warn: 3, error: 4, fatal: 5, silent: 6 } as const

export type Severity = 'info' | 'warn' | 'error' | 'fatal'

const prefixes: Readonly<Record<Severity, string>> = {
  info: '',
  warn: 'warning: ',
  error: 'error: ',
  fatal: 'bug: ',
}

function rankOf(level: string): number {
  return Object.hasOwn(ranks, level) ? ranks[level as keyof typeof ranks] : ranks.info
}

export class OperationalLog {
  /** One of trace, debug, info, warn, error, fatal, silent. */
  level: string
  readonly #output: Output

  constructor(output: Output, level = 'info') {
    this.#output = output
    this.level = level
  }

  write(severity: Severity, text: string): void {
    if (rankOf(severity) >= rankOf(this.level)) this.#output.report(`${prefixes[severity]}${text}`)
  }
}
