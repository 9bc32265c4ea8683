import { once } from 'node:events'
import { writeSync } from 'node:fs'
import { printable, printableLines } from './printable.ts'
import { paint, paintLabels } from './terminal.ts'

/** The output streams of a command; injected so that a command can run inside a test. */
export interface Output {
  /** Writes a part of the answer to standard output. On a terminal, a part about a problem is red. */
  print(text: string, isProblem?: boolean): void
  /** Writes everything else, such as warnings, to standard error. */
  report(text: string): void
  /**
   * Resolves once the output can take more, to false if its reader is gone. Commands that print much call it
   * after each part, because what cannot be written yet is kept in memory.
   */
  ready?(): Promise<boolean>
}

export const processOutput: Output = {
  print(text, isProblem = false) {
    const shown = printableLines(text)
    const { stdout } = process
    stdout.write(`${isProblem ? paint('red', shown, stdout) : paintLabels(shown, stdout)}\n`)
  },
  report: (text) =>
    void process.stderr.write(`${paintLabels(printableLines(text), process.stderr)}\n`),
  async ready() {
    const { stdout } = process
    if (stdout.errored !== null) return false
    if (!stdout.writableNeedDrain) return true
    return once(stdout, 'drain').then(
      () => true,
      () => false,
    )
  },
}

/**
 * Keeps the process alive if its output is closed (`| head`) or the disk behind it is full. If the answer
 * could not be written for another reason than a closed pipe, the process reports that and exits with 2.
 */
export function surviveOutputErrors(): void {
  process.stderr.on('error', () => {})
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE' || isOutputLost) return
    isOutputLost = true
    processOutput.report(`sluice: standard output cannot be written: ${error.message}`)
  })
  process.on('exit', () => {
    if (isOutputLost) process.exitCode = exitCode.usage
  })
}

let isOutputLost = false

/** Exit codes of every command. `negative` means that the command worked, and its answer is no. */
export const exitCode = { success: 0, negative: 1, usage: 2, bug: 70 } as const

/** Thrown for wrong usage or unreadable input. It is printed without a stack trace; the exit code is 2. */
export class UsageError extends Error {}

export type OutputFormat = 'text' | 'json'
export type ManifestFormat = 'yaml' | 'json'

/** The answer of a command: what it prints to standard output, and its exit code. */
export interface CommandResult {
  readonly text: () => readonly string[]
  /** Whether a line of `text` is about a problem. If omitted, none is. */
  readonly isProblem?: (index: number) => boolean
  /** Printed for `-o json`; nothing is printed if both this and `jsonLines` are omitted. */
  readonly json?: unknown
  /** Printed for `-o json` in place of `json`: one value per line. */
  readonly jsonLines?: () => readonly string[]
  /** If omitted, the exit code is `success`. */
  readonly exitCode?: number
}

/** Prints an answer and returns its exit code. */
export function printResult(
  result: CommandResult,
  format: OutputFormat | ManifestFormat,
  { print }: Output,
): number {
  const { text, isProblem, jsonLines, exitCode: code = exitCode.success } = result
  if (format !== 'json') text().forEach((line, index) => void print(line, isProblem?.(index)))
  else if (jsonLines !== undefined) jsonLines().forEach((line) => void print(line))
  // Read only here, because it may be a getter that computes much.
  else printJson(result.json, print)
  return code
}

/** Prints the result of a command that this process was started for, and sets the exit code. */
export async function print(
  result: CommandResult | Promise<CommandResult>,
  format: OutputFormat | ManifestFormat,
): Promise<void> {
  process.exitCode = printResult(await result, format, processOutput)
}

/**
 * Writes a result to standard output before it returns, for what cannot be had again.
 * @throws UsageError if standard output cannot take it all
 */
export function printNow(result: CommandResult, format: OutputFormat): void {
  const lines: string[] = []
  printResult(result, format, { print: (line) => void lines.push(line), report: () => undefined })
  let rest = Buffer.from(`${printableLines(lines.join('\n'))}\n`)
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest))
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      // A pipe that is full for now.
      if (code === 'EAGAIN') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
      else throw new UsageError(`standard output cannot be written: ${message}`)
    }
  }
}

function printJson(json: unknown, print: Output['print']): void {
  if (json !== undefined) print(JSON.stringify(json, undefined, 2))
}

/**
 * Formats rows as columns that are padded to their widest cell, without trailing spaces. Line breaks in cells are
 * escaped, so that a text from elsewhere cannot look like another row.
 */
export function table(cells: readonly (readonly string[])[]): string {
  const rows = cells.map((row) => row.map(printable))
  const widths: number[] = []
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, cell.length)
    })
  }
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(column === row.length - 1 ? 0 : (widths[column] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
