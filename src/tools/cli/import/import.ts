/** `sluice import` converts the configuration of another gateway to manifests, and reports what it could not convert. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  Conversion,
  detectSources,
  type ImportSource,
  readSourceFiles,
  type SourceDocument,
  SourceError,
  sources,
} from '../../import/index.ts'
import { exitCode, type Output, UsageError } from '../shared/output.ts'
import { validate } from '../validate/validate.ts'
import { formatReport, summarize } from './report.ts'
import { writeYaml } from './write-yaml.ts'

export interface ImportOptions {
  readonly from?: string
  readonly file: readonly string[]
  /** A folder, or `-` for standard output. */
  readonly output: string
  /** Write the report to this file, as JSON if its name ends with `.json`. */
  readonly report?: string
  /** Write the manifests even if protections or routes are lost, or limits change. */
  readonly allowLoss?: boolean
  /** Write the manifests even if routes are lost. */
  readonly allowDropped?: boolean
  /** Write the manifests even if limits become looser. */
  readonly allowLooser?: boolean
  /** Write the manifests although limits are stricter. */
  readonly allowStricter?: boolean
  readonly namespace?: string
  readonly port?: string
}

/** The exit code is 1 if the result is invalid, 2 if the input cannot be read, and 3 to 6 if a difference needs consent. */
export async function importConfiguration(
  options: ImportOptions,
  { print, report }: Output,
): Promise<number> {
  const documents = await readDocuments(options.file)
  const source = chooseSource(options.from, documents)
  const { namespace } = options
  const port = parsePort(options.port) ?? source.port
  const result = new Conversion({ port, ...(namespace !== undefined && { namespace }) })
  source.convert(documents, result)
  const manifests = result.finish()
  writeReport(options, result, report)
  report(summarize(source.name, manifests, result))
  const refused = missingConsents(options, result)
  const [worst] = refused
  if (worst !== undefined) {
    const problems = refused.map(({ problem }) => problem).join(', and ')
    const needed = refused.map(({ option }) => `--allow-${option}`).join(' ')
    report(
      `No manifest was written, because ${problems}. To write the manifests anyway, use ${needed}.`,
    )
    return worst.code
  }
  const written = manifests.map((object) => ({ kind: object.kind, text: writeYaml(object) }))
  const invalid = await checkManifests(written, report)
  if (options.output === '-') print(joined(written).trimEnd())
  else writeManifests(options.output, written)
  return invalid
}

/** Kinds of differences that need consent, the worst first, each with its exit code. `--allow-loss` allows all. */
const consents = [
  { kind: 'protection', code: 3, option: 'loss', problem: 'protections would be lost' },
  { kind: 'route', code: 4, option: 'dropped', problem: 'routes would be lost' },
  { kind: 'looser', code: 5, option: 'looser', problem: 'limits would become looser' },
  { kind: 'stricter', code: 6, option: 'stricter', problem: 'limits would become stricter' },
] as const

/** Returns the kinds of differences that the options do not allow. */
function missingConsents(options: ImportOptions, { counts }: Conversion) {
  const allowed = {
    loss: options.allowLoss,
    dropped: options.allowDropped,
    looser: options.allowLooser,
    stricter: options.allowStricter,
  }
  if (allowed.loss === true) return []
  return consents.filter(({ kind, option }) => counts.has(kind) && allowed[option] !== true)
}

async function readDocuments(file: readonly string[]): Promise<SourceDocument[]> {
  try {
    const documents = await readSourceFiles(file)
    if (documents.length === 0) throw new UsageError(`${file.join(', ')}: no document was found`)
    return documents
  } catch (error) {
    if (error instanceof SourceError) throw new UsageError(error.message)
    throw error
  }
}

function parsePort(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const port = Number(text)
  if (/^\d+$/.test(text) && port >= 1 && port <= 65_535) return port
  throw new UsageError(`--port ${text} is not a port number`)
}

function chooseSource(
  from: string | undefined,
  documents: readonly SourceDocument[],
): ImportSource {
  const names = sources.map(({ name }) => name).join(', ')
  if (from !== undefined) {
    const named = sources.find(({ name }) => name === from)
    if (named === undefined) throw new UsageError(`--from ${from}: expected one of ${names}`)
    return named
  }
  const [source, ...others] = detectSources(documents)
  if (source !== undefined && others.length === 0) return source
  const found = [source, ...others].map((entry) => entry?.name).join(' and ')
  const problem =
    source === undefined ? 'The source cannot be detected' : `The files look like ${found}`
  throw new UsageError(`${problem}: name it with --from (${names}).`)
}

function writeReport(
  { report: path }: ImportOptions,
  result: Conversion,
  report: Output['report'],
): void {
  if (path === undefined) {
    for (const line of formatReport(result)) report(line)
    return
  }
  const { findings, omitted } = result
  const json = `${JSON.stringify({ findings, omitted }, undefined, 2)}\n`
  const text = formatReport(result).map((line) => `${line}\n`)
  write(path, path.endsWith('.json') ? json : text.join(''))
}

function write(path: string, text: string, mode?: number): void {
  try {
    writeFileSync(path, text, mode === undefined ? {} : { mode })
  } catch (error) {
    throw new UsageError(`${path}: ${(error as NodeJS.ErrnoException).code ?? 'cannot be written'}`)
  }
}

/** A manifest as YAML. */
interface WrittenManifest {
  readonly kind: string
  readonly text: string
}

const joined = (documents: readonly WrittenManifest[]): string =>
  documents.map(({ text }) => text).join('---\n')

/** Where each kind is written; other kinds are written to `others.yaml`. */
const files: Readonly<Record<string, string>> = {
  Gateway: 'gateway.yaml',
  GatewayClass: 'gateway.yaml',
  HTTPRoute: 'routes.yaml',
  GRPCRoute: 'routes.yaml',
  GatewayBackend: 'backends.yaml',
  GatewayPolicy: 'policies.yaml',
  GatewayBudget: 'policies.yaml',
  Secret: 'secrets.yaml',
}

/** Writes one file for each group of kinds. Never overwrites a file; Secrets are readable by the user only. */
function writeManifests(folder: string, documents: readonly WrittenManifest[]): void {
  const groups = Map.groupBy(documents, ({ kind }) => files[kind] ?? 'others.yaml')
  for (const name of groups.keys()) {
    const path = join(folder, name)
    if (existsSync(path)) throw new UsageError(`${path} exists; choose an empty folder with -o`)
  }
  try {
    mkdirSync(folder, { recursive: true })
  } catch (error) {
    throw new UsageError(`${folder}: ${(error as NodeJS.ErrnoException).code ?? 'cannot be made'}`)
  }
  for (const [name, group] of groups) {
    write(join(folder, name), joined(group), name === 'secrets.yaml' ? 0o600 : undefined)
  }
}

/** Reports what `sluice validate` would report. */
async function checkManifests(
  documents: readonly WrittenManifest[],
  report: Output['report'],
): Promise<number> {
  if (documents.length === 0) return exitCode.success
  const folder = mkdtempSync(join(tmpdir(), 'sluice-import-'))
  try {
    const file = join(folder, 'manifests.yaml')
    write(file, joined(documents), 0o600)
    const result = await validate({ file: [file], output: 'json' }, () => {})
    const { objects } = result.json as { objects: readonly ValidatedObject[] }
    for (const { kind, name, errors } of objects) {
      for (const { path, message } of errors) report(`result: ${kind} ${name}: ${path}: ${message}`)
    }
    return result.exitCode === exitCode.success ? exitCode.success : exitCode.negative
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface ValidatedObject {
  readonly kind: string
  readonly name: string
  readonly errors: readonly { readonly path: string; readonly message: string }[]
}
