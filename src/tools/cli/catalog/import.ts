/** `sluice catalog import` makes a catalog of a public list of models. */
import { writeFileSync } from 'node:fs'
import { catalogOf } from '../../../engines/messages/catalog/read-catalog.ts'
import { isObject } from '../../../ground/base/json-object.ts'
import type { ListedModels } from '../../catalog/list.ts'
import { readLiteLlm } from '../../catalog/litellm.ts'
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
} as const satisfies Record<string, (list: Readonly<Record<string, unknown>>) => ListedModels>

/** @throws UsageError if the file is no such list */
export async function importCatalog(
  file: string,
  { from, provider: wanted, output }: ImportOptions,
  { print, report }: Output,
): Promise<number> {
  const found = lists[from](parseList(file, await readText(file)))
  const providers = [...found]
    .filter(([id]) => wanted === undefined || wanted.includes(id))
    .sort(byName)
  const count = providers.reduce((sum, [, models]) => sum + models.size, 0)
  if (count === 0) throw new UsageError(`${file} has no models in the form of ${from}`)
  const text = write(providers)
  // Lists change; what is written must be what the gateway reads.
  const { problems } = catalogOf(JSON.parse(text))
  if (problems.length > 0) throw new UsageError(`${file}: ${problems.join('\n')}`)
  if (output === '-') print(text.trimEnd())
  else writeFileSync(output, text)
  report(`${count} models of ${providers.length} providers`)
  return exitCode.success
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
