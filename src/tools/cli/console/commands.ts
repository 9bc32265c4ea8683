/** The commands that the page of a console may run. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listBudgets } from '../budgets/list.ts'
import { explain } from '../explain/explain.ts'
import { type Output, UsageError } from '../shared/output.ts'
import { simulate } from '../simulate/simulate.ts'
import { whatIf } from '../what-if/what-if.ts'
import { actions } from './actions.ts'
import { type CommandPlace, type ConsoleCommand, log, printed } from './console-command.ts'
import type { CommandOutput } from './server/source.ts'

export interface CommandRequest {
  readonly name: string
  readonly options: Readonly<Record<string, unknown>>
  readonly place: CommandPlace
  /** Who asks for a command that changes something; not set for one that only reads. */
  readonly author?: string
}

const json = { output: 'json' } as const

const request = {
  host: 'text',
  path: 'text',
  method: 'text',
  header: 'texts',
  port: 'text',
  ambiguousPaths: 'text',
} as const

/** Manifests of the page must not read the files of this machine. */
const edited = { readsFiles: false }

const commands: Readonly<Record<string, ConsoleCommand>> = {
  simulate: {
    takes: {
      ...request,
      at: 'text',
      curl: 'text',
      manifests: 'text',
      scheme: 'text',
      source: 'text',
      assume: 'texts',
    },
    run: (options: { file?: readonly string[] }, place, output) => {
      const overlay = options.file !== undefined
      return simulate({ ...options, ...json, ...log(place), ...edited, overlay }, output)
    },
  },
  'what-if': {
    takes: {
      at: 'text',
      since: 'text',
      until: 'text',
      manifests: 'text',
      ambiguousPaths: 'text',
    },
    run: (options: { file?: readonly string[] }, place, output) => {
      const { file = [] } = options
      const requests = place.recordDir
      const asked = { ...options, ...json, ...log(place), ...edited, file, overlay: true, requests }
      return printed(whatIf(asked, output.report), output)
    },
  },
  'explain-request': {
    takes: { ...request, at: 'text', id: 'text' },
    run: (options: object, place, output) => {
      const { recordDir } = place
      const asked = { ...options, ...json, ...log(place), recordDir }
      return printed(explain('request', [], asked, output.report), output)
    },
  },
  budgets: {
    takes: {},
    run: (_options: object, place, output) =>
      listBudgets({ ...json, ...log(place), values: true }, output),
  },
  'explain-providers': {
    takes: {},
    run: (_options: object, { stats }, output) => {
      const asked = { ...json, ...(stats !== undefined && { stats: [stats] }) }
      return printed(explain('providers', [], asked, output.report), output)
    },
  },
}

/** Runs a command; undefined if there is none with that name. */
export async function runConsoleCommand(
  request: CommandRequest,
): Promise<CommandOutput | undefined> {
  const { name, options, place, author } = request
  const table = author === undefined ? commands : actions
  const command = Object.hasOwn(table, name) ? table[name] : undefined
  if (command === undefined) return undefined
  const printed: string[] = []
  const reports: string[] = []
  const output: Output = {
    print: (text) => printed.push(text),
    report: (text) => reports.push(text),
  }
  const folder = mkdtempSync(join(tmpdir(), 'sluice-console-'))
  try {
    const { manifests, ...given } = readOptions(command.takes, options)
    const file = typeof manifests === 'string' ? { file: [writeInto(folder, manifests)] } : {}
    const exitCode = await command.run(
      { ...given, ...file, ...(author && { author }) } as never,
      place,
      output,
    )
    return { exitCode, output: printed.join('\n'), reports }
  } catch (error) {
    if (!(error instanceof Error)) throw error
    // Wrong options and unreadable input; a bug is reported in the same way, because the page shows it.
    return { exitCode: 2, output: '', reports: [...reports, error.message] }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Manifests may contain Secrets, so only the owner may read the file. */
function writeInto(folder: string, manifests: string): string {
  const path = join(folder, 'edited.yaml')
  writeFileSync(path, manifests, { mode: 0o600 })
  return path
}

/** @throws UsageError if an option is unknown or has another form */
function readOptions(
  takes: ConsoleCommand['takes'],
  options: CommandRequest['options'],
): Readonly<Record<string, unknown>> {
  for (const [name, value] of Object.entries(options)) {
    const form = Object.hasOwn(takes, name) ? takes[name] : undefined
    if (form === undefined) throw new UsageError(`${name}: no such option`)
    const parts = form === 'texts' && Array.isArray(value) ? value : [value]
    if (parts.every((part) => (form === 'flag' ? part === true : typeof part === 'string')))
      continue
    const expected = { text: 'a text', texts: 'a list of texts', flag: 'true' }
    throw new UsageError(`${name}: expected ${expected[form]}`)
  }
  return options
}
