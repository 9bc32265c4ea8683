/** The configuration file of a proxy: rawConfig, overridden by the typed fields. */
import { stringify } from 'yaml'
import { fileSetting } from './own-settings.ts'
import type { ProxyParameters } from './parameters.ts'
import { isMap } from './strategic-merge.ts'

type Values = Readonly<Record<string, unknown>>

/** Merges maps recursively; values of `above` replace all other values. */
function override(below: unknown, above: Values): Values {
  const result = new Map(Object.entries(isMap(below) ? below : {}))
  for (const [key, value] of Object.entries(above)) {
    result.set(key, isMap(value) ? override(result.get(key), value) : value)
  }
  return Object.fromEntries(result)
}

/** The log level of rawConfig, which applies if no typed field sets one. */
export function rawLogLevel(parameters: ProxyParameters): unknown {
  const logging = fileSetting(parameters, 'logging')
  return (isMap(logging) ? logging.level : undefined) ?? fileSetting(parameters, 'rustLog')
}

/** Renders the file as YAML. Equal content always gives the same text. */
export function configFile({ rawConfig, logging }: ProxyParameters): string {
  const typed: Values = {
    config: logging === undefined || Object.keys(logging).length === 0 ? {} : { logging },
  }
  return stringify(override(rawConfig ?? {}, typed), {
    sortMapEntries: true,
    aliasDuplicateObjects: false,
  })
}
