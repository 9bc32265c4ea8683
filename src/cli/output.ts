/** Where commands write; injected so that a command can be run inside a test. */
export interface Output {
  /** Standard output: the answer. */
  print(text: string): void
  /** Standard error: everything else. */
  report(text: string): void
}

export const processOutput: Output = {
  print: (text) => void process.stdout.write(`${text}\n`),
  report: (text) => void process.stderr.write(`${text}\n`),
}

/**
 * Whoever read the output may have gone (`| head`, a collector that was stopped), or the disk that it
 * goes to is full. Nothing is owed to readers: a command ends as it would have, and a gateway goes on,
 * whatever becomes of its lines. A command whose answer could not be written says so and ends with 2.
 */
export function outliveReaders(): void {
  process.stderr.on('error', () => {})
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE' || isUnwritten) return
    isUnwritten = true
    processOutput.report(`sluice: standard output cannot be written: ${error.message}`)
  })
  process.on('exit', () => {
    if (isUnwritten) process.exitCode = exitCode.usage
  })
}

/** Has something been lost that was meant for standard output? */
let isUnwritten = false

/** Exit codes of every command. */
export const exitCode = { fine: 0, no: 1, usage: 2, bug: 70 } as const

/** Wrong usage or unreadable input: printed without a stack, exit code 2. */
export class UsageError extends Error {}

export type OutputFormat = 'text' | 'json'

/** Columns padded to their widest cell; the last one is left as it is. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = []
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, cell.length)
    })
  }
  return rows
    .map((row) =>
      row
        .map((cell, column) =>
          column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}
