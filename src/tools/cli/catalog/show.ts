/** `sluice catalog show` prints what the catalogs say of a model. */
import { exitCode, type Output } from '../shared/output.ts'
import { readCatalogs } from './files.ts'

export interface ShowOptions {
  readonly provider?: string
  readonly modelCatalog?: readonly string[]
}

const bases = {
  known: 'known',
  newest: 'not known: the rules of the newest member of its family apply',
  unknown: 'not known: no family has such a name',
} as const

/** The exit code is 1 if no catalog knows the model. */
export async function showModel(
  model: string,
  { provider, modelCatalog }: ShowOptions,
  { print, report }: Output,
): Promise<number> {
  const { catalog, problems } = readCatalogs(modelCatalog)
  for (const problem of problems) report(problem)
  const listing = provider === undefined ? catalog.providersOf(model) : [provider]
  const providers = listing.length === 0 ? [''] : listing
  let isKnown = false
  for (const id of providers) {
    const { name, basis, ...rules } = catalog.find(model, id)
    const entry = catalog.entryOf(model, id)
    isKnown ||= basis === 'known' || entry !== undefined
    const { rates, tiers, tags, modalities, released, retires } = entry ?? {}
    const shown = { rates, tiers, tags, modalities, released, retires, rules }
    print(
      `${model}${id === '' ? '' : ` at ${id}`}: ${bases[basis]}${name === '' ? '' : ` (${name})`}`,
    )
    print(JSON.stringify(shown, undefined, 2))
  }
  print(`catalog ${catalog.digest}`)
  return isKnown ? exitCode.success : exitCode.negative
}
