import type { Compiled } from '../define.ts'
import type { DirectResponseConfig } from './config.ts'

/** `traffic.directResponse`; the schema has checked the bounds. */
export interface DirectResponseSpec {
  readonly status: number
  readonly body?: string
}

export function compile({ status, body }: DirectResponseSpec): Compiled<DirectResponseConfig> {
  return { config: { status, body }, problems: [] }
}
