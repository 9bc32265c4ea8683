import type { Compiled } from '../define.ts'
import type { HostRewriteConfig } from './config.ts'
import type { HostRewriteSpec } from './schema.ts'

/** `traffic.hostRewrite`: the compiled form is what the user wrote. */
export function compile({ mode }: HostRewriteSpec): Compiled<HostRewriteConfig> {
  return { config: { mode }, problems: [] }
}
