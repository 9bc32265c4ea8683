import type { HeaderChanges, HeaderValue } from '../../model/resources.ts'
import type { Compiled } from '../define.ts'
import type { HeaderModifiersConfig } from './config.ts'

/** A Gateway API HTTPHeaderFilter as users write it. */
interface HeaderFilterSpec {
  readonly set?: readonly HeaderValue[]
  readonly add?: readonly HeaderValue[]
  readonly remove?: readonly string[]
}

/** `traffic.headerModifiers`; the schema has checked names and bounds. */
export interface HeaderModifiersSpec {
  readonly request?: HeaderFilterSpec
  readonly response?: HeaderFilterSpec
}

export function compile(spec: HeaderModifiersSpec): Compiled<HeaderModifiersConfig> {
  return {
    config: {
      request: spec.request && changesOf(spec.request),
      response: spec.response && changesOf(spec.response),
    },
    problems: [],
  }
}

function changesOf(filter: HeaderFilterSpec): HeaderChanges {
  return {
    set: filter.set?.map(pair) ?? [],
    add: filter.add?.map(pair) ?? [],
    remove: filter.remove ?? [],
  }
}

const pair = ({ name, value }: HeaderValue): HeaderValue => ({ name, value })
