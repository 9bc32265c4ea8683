/** Parts that readers of public lists share. */
import type { ModelEntry } from '../../engines/messages/catalog/facts.ts'
import type { Rates } from '../../engines/messages/cost/rates.ts'
import { decimalOf } from './decimal.ts'

export type Fields = Readonly<Record<string, unknown>>

/** Entries by provider and model. */
export type ListedModels = Map<string, Map<string, ModelEntry>>

/** Adds a model; of several entries with one name, the first one that has prices counts. */
export function addModel(
  found: ListedModels,
  provider: string,
  model: string,
  entry: ModelEntry,
): void {
  if (Object.keys(entry).length === 0) return
  const models = found.get(provider) ?? new Map<string, ModelEntry>()
  found.set(provider, models)
  const name = model.toLowerCase()
  const known = models.get(name)
  if (known === undefined || (known.rates === undefined && entry.rates !== undefined)) {
    models.set(name, entry)
  }
}

/** What a list says of a model, in its own words. */
interface Listed extends Pick<ModelEntry, 'rates' | 'tiers' | 'calls' | 'multipliers'> {
  /** Numbers of tokens. */
  readonly context?: unknown
  readonly output?: unknown
  /** Lists of media. */
  readonly takes?: unknown
  readonly makes?: unknown
  /** Dates. */
  readonly released?: unknown
  readonly retires?: unknown
}

/** Returns the entry of a catalog. What is not of the expected form is left out. */
export function entryOf(listed: Listed): ModelEntry {
  const { tiers = [], context, output, takes, makes, released, retires, ...prices } = listed
  return withoutEmpty({
    ...prices,
    tiers: tiers.length === 0 ? undefined : tiers,
    limits: withoutEmpty({ context: countOf(context), output: countOf(output) }),
    modalities: mediaOf(takes, makes),
    released: dateOf(released),
    retires: dateOf(retires),
  })
}

type WithoutUndefined<Type> = { [Name in keyof Type]: Exclude<Type[Name], undefined> }

/** Removes members that are undefined or empty objects. */
export function withoutEmpty<Type extends object>(fields: Type): Partial<WithoutUndefined<Type>> {
  const isSet = (value: unknown) =>
    value !== undefined && !(isPlain(value) && Object.keys(value).length === 0)
  const entries = Object.entries(fields).filter(([, value]) => isSet(value))
  return Object.fromEntries(entries) as Partial<WithoutUndefined<Type>>
}

const isPlain = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const media = ['text', 'image', 'audio', 'video', 'pdf'] as const

/** Returns the kinds of content that a model takes and makes; undefined if a list does not say. */
function mediaOf(input: unknown, output: unknown): ModelEntry['modalities'] {
  const known = (list: unknown) => media.filter((one) => Array.isArray(list) && list.includes(one))
  const [taken, made] = [known(input), known(output)]
  return taken.length === 0 && made.length === 0 ? undefined : { input: taken, output: made }
}

/** The fields of a list with the prices of a catalog. */
export type RateFields = Readonly<Partial<Record<keyof Rates, string>>>

/** A price per token is one per million tokens with the point moved by six places. */
export const perMillion = 6

/**
 * Reads prices; undefined if there are none. `shift` is the number of places by which the point moves, because many
 * lists have prices per token. `nameOf` returns the name of a field with a price, from its usual name.
 */
export function ratesOf(
  fields: Fields,
  names: RateFields,
  shift = 0,
  nameOf = (field: string) => field,
): Rates | undefined {
  const entries = Object.entries(names).flatMap(([name, field]) => {
    const rate = decimalOf(fields[nameOf(field)], shift)
    return rate === undefined ? [] : [[name, rate]]
  })
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

export const countOf = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && Number(value) > 0 ? Number(value) : undefined

const dateOf = (value: unknown): string | undefined =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value) ? value : undefined
