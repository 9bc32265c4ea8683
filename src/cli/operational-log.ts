/**
 * What a running gateway tells its operator, on standard error: one line each, with `error: `,
 * `warning: ` or `bug: ` in front where something is wrong, `debug: ` or `trace: ` in front of what
 * only those levels show, or as JSON. What is told can be changed
 * while it runs (POST /logging on the admin address).
 */
import { isLogged, levelFor, parseLogFilter } from '../base/log-filter.ts'
import type { Output } from './output.ts'

export type Severity = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal'

type LogForm = 'text' | 'json'

/** Where a line comes from, as levels are given by. */
type LogModule = 'sluice' | 'sluice::xds' | 'sluice::proxy'

const prefixes: Readonly<Record<Severity, string>> = {
  trace: 'trace: ',
  debug: 'debug: ',
  info: '',
  warn: 'warning: ',
  error: 'error: ',
  fatal: 'bug: ',
}

/** Names that are no levels of RUST_LOG. */
const otherNames: Readonly<Record<string, string>> = { silent: 'off', fatal: 'error' }

const everything = parseLogFilter('info') ?? { levels: new Map() }

export class OperationalLog {
  form: LogForm = 'text'
  readonly #output: Output
  #level = 'info'
  #filter = everything

  constructor(output: Output, level = 'info') {
    this.#output = output
    this.level = level
  }

  /** A level (or `silent`), or levels by module in the syntax of RUST_LOG. */
  get level(): string {
    return this.#level
  }

  set level(level: string) {
    this.#level = level
    this.#filter = parseLogFilter(otherNames[level] ?? level) ?? everything
  }

  write(severity: Severity, text: string, module: LogModule = 'sluice'): void {
    const level = severity === 'fatal' ? 'error' : severity
    if (!isLogged(level, levelFor(this.#filter, module))) return
    this.#output.report(
      this.form === 'json' ? jsonLine(severity, text, module) : `${prefixes[severity]}${text}`,
    )
  }
}

function jsonLine(level: Severity, message: string, module: LogModule): string {
  return JSON.stringify({ time: new Date().toISOString(), level, module, message })
}
