/** The charts of this repository, through a real helm. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parseAllDocuments } from 'yaml'
import { partPath } from './parts.ts'

const run = promisify(execFile)

/** The folder of a chart. */
export const chartPath = (name: string) => join(import.meta.dirname, '..', '..', 'charts', name)

/** A rendered object; tests look into it freely. */
export interface Rendered {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  // biome-ignore lint/suspicious/noExplicitAny: objects of every kind, looked into by tests
  readonly [field: string]: any
}

/**
 * Runs helm with values given as an object; resolves with its standard output.
 * @throws with what helm wrote when it fails
 */
export async function helm(args: readonly string[], values: object = {}): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-helm-'))
  try {
    const file = join(folder, 'values.json')
    writeFileSync(file, JSON.stringify(values))
    // Helm's own caches and configuration stay out of the user's home.
    const env = { ...process.env, HELM_CACHE_HOME: folder, HELM_CONFIG_HOME: folder }
    const { stdout } = await run(partPath('helm'), [...args, '--values', file], {
      env,
      maxBuffer: 64 << 20,
    })
    return stdout
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export interface TemplateOptions {
  readonly release?: string
  readonly namespace?: string
  readonly args?: readonly string[]
}

/** The text that `helm template` gives for a chart. */
export function templateText(
  chart: string,
  values: object = {},
  { release = 'sluice', namespace = 'sluice-system', args = [] }: TemplateOptions = {},
): Promise<string> {
  return helm(['template', release, chartPath(chart), '--namespace', namespace, ...args], values)
}

export async function template(
  chart: string,
  values: object = {},
  options: TemplateOptions = {},
): Promise<readonly Rendered[]> {
  const text = await templateText(chart, values, options)
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Rendered | null)
    .filter((object): object is Rendered => object !== null)
}

/** The one object of a kind, and of a name if given. */
export function only(objects: readonly Rendered[], kind: string, name?: string): Rendered {
  const found = objects.filter(
    (object) => object.kind === kind && (name === undefined || object.metadata.name === name),
  )
  const [object] = found
  if (object === undefined || found.length > 1) {
    throw new Error(`${found.length} objects of kind ${kind} ${name ?? ''}`)
  }
  return object
}
