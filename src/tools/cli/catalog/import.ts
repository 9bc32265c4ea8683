/** `sluice catalog import` makes a catalog of a public list of models. */
import { writeFileSync } from 'node:fs'
import type { ModelEntry } from '../../../engines/messages/catalog/facts.ts'
import { catalogOf } from '../../../engines/messages/catalog/read-catalog.ts'
import { isObject } from '../../../ground/base/json-object.ts'
import type { ListedModels } from '../../catalog/list.ts'
import { readLiteLlm } from '../../catalog/litellm.ts'
import { Losses } from '../../catalog/losses.ts'
import { readModelsDev } from '../../catalog/models-dev.ts'
import { readOpenRouter } from '../../catalog/openrouter.ts'
import { exitCode, type Output, UsageError } from '../shared/output.ts'
import { readText } from './files.ts'

export interface ImportOptions {
  readonly from: keyof typeof lists
  readonly provider?: readonly string[]
  /** A file, or `-` for standard output. */
  readonly output: string
}

const lists = {
  litellm: readLiteLlm,
  'models.dev': readModelsDev,
  openrouter: readOpenRouter,
} as const satisfies Record<
  string,
  (list: Readonly<Record<string, unknown>>, losses: Losses) => ListedModels
>

/** @throws UsageError if the file is no such list */
export async function importCatalog(
  file: string,
  { from, provider: wanted, output }: ImportOptions,
  { print, report }: Output,
): Promise<number> {
  const losses = new Losses()
  const found = lists[from](parseList(file, await readText(file)), losses)
  const providers = [...found]
    .filter(([id]) => wanted === undefined || wanted.includes(id))
    .map(([id, models]) => [id, readable(id, models, losses)] as const)
    .sort(byName)
  for (const line of losses.lines()) report(line)
  const count = providers.reduce((sum, [, models]) => sum + models.size, 0)
  if (count === 0) throw new UsageError(`${file} has no models in the form of ${from}`)
  const text = write(providers)
  if (output === '-') print(text.trimEnd())
  else writeCatalog(output, text)
  report(`${count} models of ${providers.length} providers`)
  return exitCode.success
}

function writeCatalog(path: string, text: string): void {
  try {
    writeFileSync(path, text)
  } catch (error) {
    throw new UsageError(`${path}: ${error instanceof Error ? error.message : error}`)
  }
}

/** Lists change, so only the models that the gateway can read are written. */
function readable(
  id: string,
  models: ReadonlyMap<string, ModelEntry>,
  losses: Losses,
): ReadonlyMap<string, ModelEntry> {
  const kept = [...models].filter(([name, entry]) => {
    const { problems } = catalogOf({ providers: { [id]: { models: { [name]: entry } } } })
    for (const problem of problems) losses.leaveOut(name, `that are not valid (${problem})`)
    return problems.length === 0
  })
  return new Map(kept)
}

function parseList(file: string, text: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(text)
    if (isObject(parsed)) return parsed
  } catch {
    // The error below says the same.
  }
  throw new UsageError(`${file} is not a JSON object`)
}

type Named<Value> = readonly [name: string, value: Value]

const byName = ([a]: Named<unknown>, [b]: Named<unknown>): number => (a < b ? -1 : 1)

/** Writes one model on each line, so that changes of a catalog can be read. */
function write(providers: readonly Named<ReadonlyMap<string, unknown>>[]): string {
  const blocks = providers.map(([id, models]) => {
    const lines = [...models]
      .sort(byName)
      .map(([name, entry]) => `${JSON.stringify(name)}: ${JSON.stringify(entry)}`)
    return `${JSON.stringify(id)}: {\n"models": {\n${lines.join(',\n')}\n}\n}`
  })
  return `{\n"providers": {\n${blocks.join(',\n')}\n}\n}\n`
}
