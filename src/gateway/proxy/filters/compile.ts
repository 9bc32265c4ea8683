/** The filters of a rule or of a backendRef, grouped by the phase that applies them. */
import { filterProblem } from '../../../ground/model/filter-problems.ts'
import type { HeaderChanges, RouteFilter } from '../../../ground/model/resources.ts'

export type RewriteFilter = Extract<RouteFilter, { type: 'rewrite' }>
export type RedirectFilter = Extract<RouteFilter, { type: 'redirect' }>
export type MirrorFilter = Extract<RouteFilter, { type: 'mirror' }>
type RequestHeadersFilter = Extract<RouteFilter, { type: 'requestHeaders' }>

export interface CompiledFilters {
  /** Header changes and rewrites of the request, in order. */
  readonly edits: readonly (RequestHeadersFilter | RewriteFilter)[]
  readonly responseHeaders: readonly HeaderChanges[]
  readonly redirect: RedirectFilter | undefined
  readonly mirrors: readonly MirrorFilter[]
  /** Whether a rewrite sets the host. If so, no other rewrite of the host applies. */
  readonly setsHost: boolean
  /** Why the filters are invalid, if they are. Requests of the rule are then refused. */
  readonly problem: string | undefined
}

const noFilters: CompiledFilters = {
  edits: [],
  responseHeaders: [],
  redirect: undefined,
  mirrors: [],
  setsHost: false,
  problem: undefined,
}

/** Groups and checks the filters, so that this is not done for every request. */
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
