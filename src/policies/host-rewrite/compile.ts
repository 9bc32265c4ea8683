import type { Compiled } from '../define.ts'
import type { HostRewriteConfig } from './config.ts'

/** `traffic.hostRewrite`: the compiled form is what the user wrote. */
export function compile({ mode }: HostRewriteConfig): Compiled<HostRewriteConfig> {
  return { config: { mode }, problems: [] }
}
