import type { Compiled } from '../define.ts'
import type { DirectResponseConfig } from './config.ts'
import type { DirectResponseSpec } from './schema.ts'

/** `traffic.directResponse`; the schema has checked the bounds. */
export function compile({ status, body }: DirectResponseSpec): Compiled<DirectResponseConfig> {
  return { config: { status, body }, problems: [] }
}
