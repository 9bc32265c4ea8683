/** Converts a configuration with `sluice import`, and serves the result with `sluice run`. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import type { ImportFinding } from '../../src/tools/import/index.ts'
import { useGateway } from '../support/fixture.ts'
import { type CommandResult, type RunningGateway, sluice } from '../support/gateway.ts'

export interface Imported extends CommandResult {
  readonly findings: readonly ImportFinding[]
  /** File name -> content of the manifests. */
  readonly manifests: Readonly<Record<string, string>>
  /** Result of `sluice validate --strict`; undefined if nothing was written. */
  readonly validation?: CommandResult
}

/** Runs `sluice import` on one file with this content. */
export async function runImport(content: string, ...args: string[]): Promise<Imported> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-import-test-'))
  try {
    const source = join(folder, 'source.yaml')
    const out = join(folder, 'out')
    const reportFile = join(folder, 'report.json')
    writeFileSync(source, content)
    const result = await sluice('import', '-f', source, '-o', out, '--report', reportFile, ...args)
    const { findings } = read<{ findings: ImportFinding[] }>(reportFile) ?? { findings: [] }
    const names = filesOf(out)
    const manifests = names.map((name) => [name, readFileSync(join(out, name), 'utf8')])
    const validation =
      names.length === 0 ? {} : { validation: await sluice('validate', '--strict', '-f', out) }
    return { ...result, findings, manifests: Object.fromEntries(manifests), ...validation }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function filesOf(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function read<T>(file: string): T | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as T
  } catch {
    return undefined
  }
}

interface ServedImport {
  readonly gateway: RunningGateway
  /** The conversion; set once the gateway has started. */
  readonly imported: () => Imported
}

/**
 * Serves the result of a conversion. `edit` replaces texts of the manifests before they are served, such as
 * the placeholders of secrets.
 */
export function useImport(
  source: () => { content: string; args?: readonly string[] },
  edit: (text: string) => string = (text) => text,
): ServedImport {
  let imported: Imported | undefined
  const gateway = useGateway(async () => {
    const { content, args = [] } = source()
    imported = await runImport(content, ...args)
    const entries = Object.entries(imported.manifests)
    if (entries.length === 0) throw new Error(`nothing was written: ${imported.stderr}`)
    return { manifests: Object.fromEntries(entries.map(([name, text]) => [name, edit(text)])) }
  })
  afterAll(() => {
    imported = undefined
  })
  return {
    gateway,
    imported: () => {
      if (imported === undefined) throw new Error('the conversion has not run')
      return imported
    },
  }
}

/** The findings as `kind: field`, sorted. */
export const outline = ({ findings }: Imported): string[] =>
  findings.map(({ kind, field }) => `${kind}: ${field}`).sort()
