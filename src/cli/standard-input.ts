/** `-f -`: manifests from standard input, for commands that look at them once. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What messages call it. */
const standardInput = '(standard input)'

interface ReadPaths {
  readonly paths: readonly string[]
  /** The name by which messages call a file. */
  nameOf(file: string): string
  /** Removes what was written. */
  dispose(): void
}

/** Puts a file in the place of `-`, readable by nobody else, since manifests may hold Secrets. */
export function withStandardInput(paths: readonly string[]): ReadPaths {
  if (!paths.includes('-')) return { paths, nameOf: (file) => file, dispose: () => {} }
  const folder = mkdtempSync(join(tmpdir(), 'sluice-'))
  const written = join(folder, 'input.yaml')
  writeFileSync(written, readFileSync(0), { mode: 0o600 })
  return {
    paths: paths.map((path) => (path === '-' ? written : path)),
    nameOf: (file) => (file === written ? standardInput : file),
    dispose: () => rmSync(folder, { recursive: true, force: true }),
  }
}
