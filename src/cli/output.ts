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
 * Whoever read the output may have gone (`| head`, a collector that was stopped). Nothing is owed to
 * them: a command ends as it would have, and a gateway goes on.
 */
export function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
    })
  }
}

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
