/** Reads catalogs of models. An entry that is not valid is left out, and all others stay. */
import { isObject } from '../../../ground/base/json-object.ts'
import { problemOf, type Shape } from '../../../ground/base/shape.ts'
import { nearest } from '../../../ground/base/suggest.ts'
import { isTooDeep, parseJson } from '../../json/parse.ts'
import type { Tier } from '../cost/rates.ts'
import { type Family, familyEntry, type ModelEntry, modelEntry } from './facts.ts'

export interface CatalogContent {
  readonly families: readonly Family[]
  /** Entries by provider and model. */
  readonly providers: ReadonlyMap<string, ReadonlyMap<string, ModelEntry>>
}

interface CatalogRead extends CatalogContent {
  /** What is not valid; each message names the place in the file. */
  readonly problems: readonly string[]
}

/** Maximum size of a catalog in characters. A ConfigMap has at most one MiB. */
const maxCatalogLength = 8 * 1024 * 1024

const topFields = ['families', 'providers']
const nothing: CatalogContent = { families: [], providers: new Map() }

/** Reads a catalog in JSON. */
export function readCatalog(text: string): CatalogRead {
  if (text.length > maxCatalogLength) {
    return { ...nothing, problems: [`the catalog has more than ${maxCatalogLength} characters`] }
  }
  const parsed = isTooDeep(text) ? undefined : parseJson(text)
  if (!isObject(parsed)) return { ...nothing, problems: ['the catalog is not a JSON object'] }
  return catalogOf(parsed)
}

/** Reads a catalog that is parsed already. */
export function catalogOf(value: Readonly<Record<string, unknown>>): CatalogRead {
  const problems: string[] = []
  for (const name of Object.keys(value)) {
    if (!topFields.includes(name)) problems.push(unknownField(name, name, topFields))
  }
  const families = new Reader(problems).list(value.families, 'families', familyEntry)
  const providers = new Map<string, Map<string, ModelEntry>>()
  for (const [id, provider] of objectEntries(value.providers, 'providers', problems)) {
    const path = `providers.${id}`
    if (!knownProviders.has(providerId(id))) problems.push(unknownProvider(path, id))
    const models = isObject(provider) ? provider.models : undefined
    const entries = objectEntries(models, `${path}.models`, problems)
    const read = entries.flatMap(([name, entry]) => {
      const problem = problemOfEntry(entry)
      if (problem === undefined) return [[name.toLowerCase(), entry as ModelEntry] as const]
      problems.push(`${path}.models[${JSON.stringify(name)}]${joined(problem)}`)
      return []
    })
    providers.set(providerId(id), new Map(read))
  }
  return { families, providers, problems }
}

/** Other names of providers, as manifests, telemetry and other lists write them. */
const providerNames = new Map<string, string>([
  ['azure.ai.openai', 'azure'],
  ['gemini', 'gcp.gemini'],
  ['vertexai', 'gcp.vertex_ai'],
  ['bedrock', 'aws.bedrock'],
  ['mistral', 'mistral_ai'],
  ['togetherai', 'together_ai'],
  ['xai', 'x_ai'],
])

/** The ids of all providers that a request can go to. */
export const knownProviders: ReadonlySet<string> = new Set(
  [
    ['openai', 'azure', 'anthropic', 'gcp.gemini', 'gcp.vertex_ai', 'aws.bedrock', 'custom'],
    ['ollama', 'vllm', 'llamacpp', 'lmstudio', 'groq', 'mistral_ai', 'deepseek', 'x_ai'],
    ['openrouter', 'together_ai', 'fireworks', 'baseten', 'deepinfra', 'cerebras', 'cohere'],
    ['huggingface'],
  ].flat(),
)

function unknownProvider(path: string, id: string): string {
  const meant = nearest(id, [...knownProviders, ...providerNames.keys()])
  const hint = meant === undefined ? '' : `; did you mean ${meant}?`
  return `${path}: no provider has this name, so the models are not used${hint}`
}

/** Returns the id under which catalogs have the models of a provider. */
export const providerId = (name: string): string => providerNames.get(name) ?? name

class Reader {
  readonly #problems: string[]

  constructor(problems: string[]) {
    this.#problems = problems
  }

  list<Item>(value: unknown, path: string, item: Shape<Item>): Item[] {
    if (value === undefined) return []
    if (!Array.isArray(value)) {
      this.#problems.push(`${path}: expected a list`)
      return []
    }
    return value.filter((one, at): one is Item => {
      const problem = problemOf(item, one)
      if (problem !== undefined) this.#problems.push(`${path}[${at}]${joined(problem)}`)
      return problem === undefined
    })
  }
}

/** Returns a problem after the path of its object. The problem may begin with a path below it. */
const joined = (problem: string): string =>
  /^[\w[\].]+: /.test(problem) ? `.${problem}` : `: ${problem}`

function objectEntries(value: unknown, path: string, problems: string[]): [string, unknown][] {
  if (isObject(value)) return Object.entries(value)
  if (value !== undefined) problems.push(`${path}: expected an object`)
  return []
}

function problemOfEntry(entry: unknown): string | undefined {
  return problemOf(modelEntry, entry) ?? problemOfTiers((entry as ModelEntry).tiers)
}

/** The thresholds of each service rise, so that the last one that the input exceeds is the right one. */
function problemOfTiers(tiers: readonly Tier[] = []): string | undefined {
  const last = new Map<string | undefined, number>()
  for (const [at, { contextOver = -1, service, utc }] of tiers.entries()) {
    if (utc !== undefined) continue
    const before = last.get(service)
    if (before !== undefined && contextOver <= before) {
      return `tiers[${at}].contextOver: expected more than ${before}, as tiers must rise`
    }
    last.set(service, contextOver)
  }
  return undefined
}

function unknownField(path: string, name: string, known: readonly string[]): string {
  const meant = nearest(name, known)
  return `${path}: unknown field${meant === undefined ? '' : `; did you mean ${meant}?`}`
}
