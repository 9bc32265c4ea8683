import type { Compiled } from '../define.ts'
import type { AccessLogConfig } from './config.ts'
import type { AccessLogSpec } from './schema.ts'

/** Expressions are checked wherever the schema has one, so nothing is left to find here. */
export function compile({ filter, attributes }: AccessLogSpec): Compiled<AccessLogConfig> {
  const config = {
    ...(filter !== undefined && { filter }),
    ...(attributes !== undefined && { attributes }),
  }
  return { config, problems: [] }
}
