/**
 * The log of a running gateway on standard error, as text or JSON. A line of text begins with its level,
 * unless that is `info`. Level and format can be changed at run time (POST /logging on the admin server).
 */
import { isLogged, levelFor, parseLogFilter } from '../../../ground/settings/log-filter.ts'
import type { Output } from './output.ts'

export type Severity = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal'

type LogForm = 'text' | 'json'

/** The part of Sluice that writes a line. A log filter can set a level for each. */
type LogModule = 'sluice' | 'sluice::xds' | 'sluice::proxy'

const prefixes: Readonly<Record<Severity, string>> = {
  trace: 'trace: ',
  debug: 'debug: ',
  info: '',
  warn: 'warning: ',
  error: 'error: ',
  fatal: 'bug: ',
}

/** Levels that RUST_LOG does not have, with their equivalents. */
const levelAliases: Readonly<Record<string, string>> = { silent: 'off', fatal: 'error' }

const defaultFilter = parseLogFilter('info') ?? { levels: new Map() }

export class OperationalLog {
  form: LogForm = 'text'
  readonly #output: Output
  #level = 'info'
  #filter = defaultFilter

  constructor(output: Output, level = 'info') {
    this.#output = output
    this.level = level
  }

  /** The log filter: a level (or `silent`), or levels by module in the syntax of RUST_LOG. */
  get level(): string {
    return this.#level
  }

  set level(level: string) {
    this.#level = level
    this.#filter = parseLogFilter(levelAliases[level] ?? level) ?? defaultFilter
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
