/** The configuration file of a proxy: rawConfig, with what typed fields say over it. */
import { stringify } from 'yaml'
import { fileSetting } from './own-settings.ts'
import type { ProxyParameters } from './parameters.ts'
import { isMap } from './strategic-merge.ts'

type Values = Readonly<Record<string, unknown>>

/** Maps merge, everything else is replaced. */
function over(below: unknown, above: Values): Values {
  const result = new Map(Object.entries(isMap(below) ? below : {}))
  for (const [key, value] of Object.entries(above)) {
    result.set(key, isMap(value) ? over(result.get(key), value) : value)
  }
  return Object.fromEntries(result)
}

/** The level that the configuration asks for by itself, where no typed field does. */
export function rawLevel(parameters: ProxyParameters): unknown {
  const logging = fileSetting(parameters, 'logging')
  return (isMap(logging) ? logging.level : undefined) ?? fileSetting(parameters, 'rustLog')
}

/** YAML; with equal content always the same text. */
export function configFile({ rawConfig, logging }: ProxyParameters): string {
  const typed: Values = {
    config: logging === undefined || Object.keys(logging).length === 0 ? {} : { logging },
  }
  return stringify(over(rawConfig ?? {}, typed), {
    sortMapEntries: true,
    aliasDuplicateObjects: false,
  })
}
