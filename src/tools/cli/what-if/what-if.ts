/** `sluice what-if` shows what a change of manifests would change, before it is applied. */
import {
  type ChangeKind,
  changeKinds,
  type RequestChanges,
  RequestTally,
} from '../../../past/what-if/groups.ts'
import { timeOf } from '../decisions/source.ts'
import { readPathRule } from '../explain/request.ts'
import { type CommandResult, exitCode, type Output, UsageError } from '../shared/output.ts'
import { budgetRefusals, type InRange } from './budgets.ts'
import { type ControlPlaneChanges, controlPlaneChanges } from './control-plane.ts'
import { guardDifferences } from './guards.ts'
import { reportMarkdown } from './markdown.ts'
import { openRecords, type RecordOptions, type RecordSource } from './record-source.ts'
import { reportText, type WhatIfReport } from './report.ts'
import { readStates, type StateOptions, type States } from './state.ts'

export interface WhatIfOptions extends StateOptions, RecordOptions {
  /** Only records from this time on, and before this one. */
  readonly since?: string
  readonly until?: string
  /** Value of the proxy setting `ambiguous-paths`; if omitted, the default of the setting. */
  readonly ambiguousPaths?: string
  /** Files of model catalogs with prices. */
  readonly modelCatalog?: readonly string[]
  readonly output: 'text' | 'json' | 'markdown'
  /** Kinds of changes that make the exit code 1, separated by commas; every change if omitted. */
  readonly failOn?: string
}

/** Exit code if some requests are undecided and nothing else changes. */
const onlyUndecided = 3

/** @throws UsageError */
function readKinds(list: string | undefined): ReadonlySet<ChangeKind> | undefined {
  if (list === undefined) return undefined
  return new Set(
    list.split(',').map((name) => {
      const kind = changeKinds.find((known) => known === name.trim())
      if (kind !== undefined) return kind
      throw new UsageError(`--fail-on ${name.trim()} is not one of ${changeKinds.join(', ')}`)
    }),
  )
}

function kindsOf(report: WhatIfReport): Set<ChangeKind> {
  const { conditions, refused, resources, requests, budgets = [], guards = [] } = report
  const kinds = new Set<ChangeKind>(requests.groups.flatMap((group) => group.kinds))
  if (budgets.some((one) => one.refused > 0)) kinds.add('limit').add('allow-to-deny')
  for (const one of guards) {
    if (one.refused.records > 0) kinds.add('guard').add('allow-to-deny')
    if (one.masked.records + one.passed.records > 0) kinds.add('guard')
  }
  if (conditions.length + refused.length > 0) kinds.add('condition')
  if (Object.values(resources).some(({ length }) => length > 0)) kinds.add('resource')
  if (requests.undecided > 0) kinds.add('undecided')
  return kinds
}

function codeOf(report: WhatIfReport, failOn: ReadonlySet<ChangeKind> | undefined): number {
  const kinds = kindsOf(report)
  if (failOn !== undefined) {
    return failOn.isDisjointFrom(kinds) ? exitCode.success : exitCode.negative
  }
  // If there are records, changed resources count only through the requests that they affect.
  if (report.requests.total > 0) kinds.delete('resource')
  const isUndecided = kinds.delete('undecided')
  if (kinds.size > 0) return exitCode.negative
  return isUndecided ? onlyUndecided : exitCode.success
}

async function requestChanges(
  options: Pick<WhatIfOptions, 'ambiguousPaths' | 'modelCatalog'>,
  source: RecordSource | undefined,
  isIn: InRange,
  states: States,
  { resources }: ControlPlaneChanges,
  report: Output['report'],
): Promise<RequestChanges> {
  const { modelCatalog, ambiguousPaths } = options
  if (source === undefined) return new RequestTally().result()
  const { compareRequests } = await import('./traffic.ts')
  const records = {
    source,
    isIn,
    ambiguousPaths: readPathRule({ ambiguousPaths }),
    ...(modelCatalog && { catalog: modelCatalog }),
  }
  return compareRequests(records, states, resources, report)
}

/** @throws UsageError */
function rangeOf({ since, until }: Pick<WhatIfOptions, 'since' | 'until'>): InRange {
  const from = since === undefined ? '' : timeOf(since, '--since')
  const to = until === undefined ? undefined : timeOf(until, '--until')
  return ({ time }) => time >= from && (to === undefined || time < to)
}

export async function whatIf(
  { output, failOn, ...options }: WhatIfOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const kinds = readKinds(failOn)
  const source = await openRecords(options)
  const states = await readStates(options, report)
  const controlPlane = controlPlaneChanges(states)
  const isIn = rangeOf(options)
  const requests = await requestChanges(options, source, isIn, states, controlPlane, report)
  const tried = source === undefined ? [] : budgetRefusals(states, source, isIn)
  const budgets = tried.length > 0 ? { budgets: tried } : {}
  const guarded = source === undefined ? [] : guardDifferences(states, source, isIn)
  const guards = guarded.length > 0 ? { guards: guarded } : {}
  const changes = {
    ...controlPlane,
    requests,
    ...budgets,
    ...guards,
    hasRequests: source !== undefined,
  }
  const { hasRequests: _, ...json } = changes
  return {
    text: () => (output === 'markdown' ? reportMarkdown(changes) : reportText(changes)),
    json,
    exitCode: codeOf(changes, kinds),
  }
}
