/** The filters of a rule or of a backendRef, sorted by the phase that needs them. */
import { filterProblem } from '../../model/filter-problems.ts'
import type { HeaderChanges, RouteFilter } from '../../model/resources.ts'
import type { RedirectFilter } from './redirect.ts'

export type RewriteFilter = Extract<RouteFilter, { type: 'rewrite' }>
export type MirrorFilter = Extract<RouteFilter, { type: 'mirror' }>
type RequestHeadersFilter = Extract<RouteFilter, { type: 'requestHeaders' }>

export interface CompiledFilters {
  /** Changes of the request, in the order in which they are written. */
  readonly edits: readonly (RequestHeadersFilter | RewriteFilter)[]
  readonly responseHeaders: readonly HeaderChanges[]
  readonly redirect: RedirectFilter | undefined
  readonly mirrors: readonly MirrorFilter[]
  /** A rewrite gives the host, so that no other host rewrite applies. */
  readonly setsHost: boolean
  /** What cannot be sent; a rule with it fails closed. */
  readonly problem: string | undefined
}

/** Most rules and backends have none. */
const noFilters: CompiledFilters = {
  edits: [],
  responseHeaders: [],
  redirect: undefined,
  mirrors: [],
  setsHost: false,
  problem: undefined,
}

/** Sorts filters, and checks once what would otherwise have to be checked on every request. */
export function compileFilters(filters: readonly RouteFilter[]): CompiledFilters {
  if (filters.length === 0) return noFilters
  const edits = filters.filter(
    (filter) => filter.type === 'requestHeaders' || filter.type === 'rewrite',
  )
  return {
    edits,
    responseHeaders: filters
      .filter((filter) => filter.type === 'responseHeaders')
      .map(({ changes }) => changes),
    redirect: filters.find((filter) => filter.type === 'redirect'),
    mirrors: filters.filter((filter) => filter.type === 'mirror'),
    setsHost: edits.some((edit) => edit.type === 'rewrite' && edit.hostname !== undefined),
    problem: filters.map(problemText).find((problem) => problem !== undefined),
  }
}

function problemText(filter: RouteFilter): string | undefined {
  const problem = filterProblem(filter)
  return problem && `${problem.path}: ${problem.message}`
}
