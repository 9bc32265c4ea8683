/** Which format a request has, by the end of its path. */
import type { RouteType } from '../policy/schema.ts'

export type Routes = Readonly<Record<string, RouteType>>

const any = '*'

/** The longest suffix that fits, then `*`; Completions where nothing does. `path` has no query. */
export function routeTypeOf(path: string, routes: Routes | undefined): RouteType {
  let best: string | undefined
  for (const suffix of Object.keys(routes ?? {})) {
    if (suffix === any || !path.endsWith(suffix)) continue
    if (best === undefined || suffix.length > best.length) best = suffix
  }
  return routes?.[best ?? any] ?? 'Completions'
}
