/** Reads the settings of a LiteLLM configuration that are not about one model. */
import type { Conversion, Fields } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import type { KeySource } from '../models.ts'
import { addSecret, duration } from '../targets.ts'
import { addBudgets } from './budgets.ts'

interface Fallback {
  readonly name: string
  readonly field: SourceField
}

const reference = /^os\.environ\/(\w+)$/

export class Settings {
  readonly #root: SourceField
  readonly #fallbacks = new Map<string, Fallback[]>()

  constructor(root: SourceField) {
    this.#root = root
    for (const section of [root.get('router_settings'), root.get('litellm_settings')]) {
      for (const item of section.items('fallbacks')) {
        for (const [name, list] of item.entries()) {
          const found = list.items().map((field) => ({ name: field.text() ?? '', field }))
          this.#fallbacks.set(name, [...(this.#fallbacks.get(name) ?? []), ...found])
        }
      }
      for (const field of section.items('default_fallbacks')) {
        this.#fallbacks.set('*', [
          ...(this.#fallbacks.get('*') ?? []),
          { name: field.text() ?? '', field },
        ])
      }
    }
  }

  /** Models that respond if this one fails. */
  fallbacksOf(model: string): Fallback[] {
    const found = this.#fallbacks.get(model) ?? this.#fallbacks.get('*') ?? []
    return found.filter(({ name }) => name !== model)
  }

  /** A key that is inline, or in an environment variable, which the configuration may define. */
  keyOf(field: SourceField): KeySource {
    const text = field.text()
    const variable = reference.exec(text ?? '')?.[1]
    if (variable === undefined) return { value: text }
    const defined = this.#root.at('environment_variables', variable).text()
    return defined === undefined ? { variable } : { value: defined }
  }

  /** A text that is not secret; undefined if only the environment has it. */
  plainOf(field: SourceField): string | undefined {
    return this.keyOf(field).value
  }

  /** Other names of each model. */
  aliases(): Map<string, string[]> {
    const aliases = new Map<string, string[]>()
    for (const [alias, field] of this.#root.at('router_settings', 'model_group_alias').entries()) {
      const model = field.text()
      if (model !== undefined) aliases.set(model, [...(aliases.get(model) ?? []), alias])
    }
    return aliases
  }

  first(name: string): SourceField {
    const [router, general] = [
      this.#root.get('router_settings'),
      this.#root.get('litellm_settings'),
    ]
    const field = general.get(name)
    return router.has(name) ? router.get(name) : field
  }
}

/** Statuses after which LiteLLM asks again. */
const retriedCodes = [408, 429, 500, 502, 503, 504]

export function retries(settings: Settings): Fields {
  const attempts = settings.first('num_retries').number()
  return attempts === undefined || attempts < 1 ? {} : { retry: { attempts, codes: retriedCodes } }
}

export function timeouts(settings: Settings): Fields {
  const seconds = settings.first('request_timeout').number() ?? settings.first('timeout').number()
  return seconds === undefined || seconds <= 0
    ? {}
    : { timeouts: { request: duration(seconds * 1000) } }
}

/** The master key becomes the API key of clients. */
export function clientAuthentication(root: SourceField, result: Conversion): Fields {
  const general = root.get('general_settings')
  const field = general.get('master_key')
  if (general.has('database_url')) {
    const reason =
      'keys, teams and budgets of the database are not read: add the keys to Secret client-keys'
    general.get('database_url').report('changed', reason)
  }
  if (!field.isSet) return {}
  const { value, variable } = new Settings(root).keyOf(field)
  const name = result.nameOf('Secret', 'client-keys')
  const reason =
    variable === undefined
      ? `the inline value is now in Secret ${name}`
      : `Secret ${name} has no key yet, so that every client is refused: add the value of ${variable}`
  field.report('secret', reason)
  const secretRef = addSecret(result, name, value === undefined ? {} : { master: value }, root)
  return { apiKeyAuthentication: { secretRef } }
}

/** Converts the limits of the whole proxy and of teams. */
export function addProxyLimits(root: SourceField, result: Conversion): void {
  addBudgets(root, result)
  const general = root.get('general_settings')
  const parallel = general.get('global_max_parallel_requests')
  parallel.lose('a limit of parallel requests has no counterpart')
}
