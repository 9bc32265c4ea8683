/** Formats the answer of `sluice what-if` as text. */

import { objectKey, objectText } from '../../../ground/model/names.ts'
import type { CostChange } from '../../../past/what-if/costs.ts'
import type { ChangeGroup, Example, RequestChanges } from '../../../past/what-if/groups.ts'
import { printable } from '../shared/printable.ts'
import { type BudgetRefusals, refusalLines } from './budgets.ts'
import type { ChangedCondition, ControlPlaneChanges } from './control-plane.ts'
import { type GuardDifference, guardLines } from './guards.ts'
import type { OverriddenPolicy } from './overridden.ts'

export interface WhatIfReport extends ControlPlaneChanges {
  readonly requests: RequestChanges
  /** Budgets that are added or changed, if records were given. */
  readonly budgets?: readonly BudgetRefusals[]
  /** Guards of models that are added or changed, if records were given. */
  readonly guards?: readonly GuardDifference[]
  /** Whether records were given. */
  readonly hasRequests: boolean
}

/** A part of the report: its name, the number of its entries, and one line or more for each. */
export interface Section {
  readonly title: string
  readonly count: number
  readonly lines: readonly string[]
}

const exampleText = ({ id, time, method, host, path }: Example): string =>
  printable(`${time} ${method} ${host}${path} (${id})`)

const groupTitle = ({ from, to, count, represented, cause }: ChangeGroup): string =>
  printable(`${from} → ${to}, ${requestsText(count, represented)}, because ${cause}`)

function requestsText(count: number, represented?: number): string {
  const about = represented === undefined ? '' : ` (about ${represented} by weight)`
  return `${count} request${count === 1 ? '' : 's'}${about}`
}

function conditionText({ object, place, type, from, to }: ChangedCondition): string[] {
  const where = place === '' ? objectText(object) : `${objectText(object)}, ${place}`
  const text = (value: typeof from) => {
    if (value === null) return 'absent'
    return `${value.status} ${value.reason}${value.message === '' ? '' : `: ${value.message}`}`
  }
  if (from === null) return [`${where}: ${type} ${text(to)}`]
  return [`${where}: ${type}`, `  - ${text(from)}`, `  + ${text(to)}`]
}

function overriddenText({ policy, field, by, places }: OverriddenPolicy): string {
  const at = places === 1 ? 'at one place' : `at ${places} places`
  return `${objectText(policy)}: ${field} is overridden by ${objectText(by)} ${at}`
}

function groupLines(group: ChangeGroup): string[] {
  const more = group.count > group.examples.length ? ['  …'] : []
  return [groupTitle(group), ...group.examples.map((one) => `  ${exampleText(one)}`), ...more]
}

export function differenceText(before: string, difference: string): string {
  const sign = difference.startsWith('-') ? '' : '+'
  const percent = Number(((Number(difference) / Number(before)) * 100).toPrecision(3))
  const share = Number(before) === 0 ? '' : `, ${sign}${percent}%`
  return `${sign}${difference} USD${share}`
}

/** The costs of all requests to models, and which requests are not in them. */
function costLines({ before, after, difference, requests, unknown }: CostChange): string[] {
  return [
    `${requestsText(requests)}: ${before} USD now, ${after} USD after the change (${differenceText(before, difference)}), by weight`,
    ...unknown.map(
      ({ reason, count }) => `  not included: ${requestsText(count)}, because ${reason}`,
    ),
  ]
}

/** The parts with entries, the most important ones first. */
export function sectionsOf(report: WhatIfReport): Section[] {
  const { requests, refused, conflicts, overridden, conditions, resources, objects } = report
  const { budgets = [], guards = [] } = report
  const isListed = new Set(conflicts)
  const isGone = new Set(objects.removed.map(objectKey))
  const others = conditions.filter(
    (condition) => !isListed.has(condition) && !isGone.has(objectKey(condition.object)),
  )
  const { added, removed, changed } = resources
  const keys = [
    ...removed.map((key) => `- ${key}`),
    ...added.map((key) => `+ ${key}`),
    ...changed.map((key) => `~ ${key}`),
  ]
  const refs = [
    ...objects.removed.map((ref) => `- ${objectText(ref)}`),
    ...objects.added.map((ref) => `+ ${objectText(ref)}`),
    ...objects.changed.map((ref) => `~ ${objectText(ref)}`),
  ]
  const sections = [
    {
      title: 'Requests that change',
      count: requests.changed,
      lines: requests.groups.flatMap(groupLines),
    },
    {
      title: 'Requests that budgets would refuse',
      count: budgets.length,
      lines: budgets.flatMap(refusalLines).map(printable),
    },
    {
      title: 'Guards that change',
      count: guards.length,
      lines: guards.flatMap(guardLines).map(printable),
    },
    {
      title: 'Requests to models whose cost changes or is unknown',
      count: requests.costs === undefined ? 0 : requests.costs.changed + requests.costs.undecided,
      lines: requests.costs === undefined ? [] : costLines(requests.costs),
    },
    {
      title: 'Undecided requests',
      count: requests.undecided,
      lines: requests.undecidedGroups.flatMap(({ reason, count, represented, examples }) => [
        `${requestsText(count, represented)}: ${printable(reason)}`,
        ...examples.slice(0, 1).map((one) => `  ${exampleText(one)}`),
      ]),
    },
    {
      title: 'Invalid objects, whose last versions stay in force',
      count: refused.length,
      lines: refused.flatMap(({ problems, ...ref }) =>
        problems.map(({ path, message }) => `${objectText(ref)}: ${path}: ${message}`),
      ),
    },
    {
      title: 'New conflicts',
      count: conflicts.length,
      lines: conflicts.flatMap(conditionText),
    },
    {
      title: 'Overridden policies',
      count: overridden.length,
      lines: overridden.map(overriddenText),
    },
    { title: 'Objects', count: refs.length, lines: refs },
    { title: 'Conditions', count: others.length, lines: others.flatMap(conditionText) },
    { title: 'Resources', count: keys.length, lines: keys },
  ]
  return sections.filter(({ count }) => count > 0)
}

function summaryOf({ requests, hasRequests }: WhatIfReport, hasSections: boolean): string {
  const { total, unchanged, changed, undecided, represented } = requests
  const about = (weight: number | undefined, count: number) =>
    weight === undefined || weight === count ? '' : ` (about ${weight} by weight)`
  const counts = `${unchanged} unchanged, ${changed} changed${about(represented?.changed, changed)}, ${undecided} undecided${about(represented?.undecided, undecided)}`
  const traffic = hasRequests ? [`${requestsText(total, represented?.total)}: ${counts}`] : []
  return [...(hasSections ? [] : ['nothing changes']), ...traffic].join('; ')
}

/** Says which requests were not tested, because the records have only a part of the traffic. */
export function caveatOf({ requests: { total, records } }: WhatIfReport): string[] {
  if (records?.isPartial !== true) return []
  const remedy = 'To test all requests, record them with --record all.'
  if (total === 0) return [`There are no records, so no request was tested. ${remedy}`]
  const settings = records.settings.join(', ')
  const made = settings === '' ? '' : ` (record: ${settings})`
  if (records.leastVisible !== undefined) {
    const share = `${Number((records.leastVisible * 100).toPrecision(2))}%`
    return [
      `The records have only a part of the traffic${made}. A change of less than about ${share} of the requests may not show. ${remedy}`,
    ]
  }
  const found =
    settings === 'errors'
      ? 'the records have only failed requests'
      : 'the records may have only a part of the traffic'
  return [`Requests that passed may be untested: ${found}${made}. ${remedy}`]
}

export function reportText(report: WhatIfReport): string[] {
  const sections = sectionsOf(report)
  const summary = summaryOf(report, sections.length > 0)
  return [
    ...(summary === '' ? [] : [summary]),
    ...caveatOf(report),
    ...sections.flatMap(({ title, count, lines }, at) => [
      ...(at === 0 && summary === '' ? [] : ['']),
      `${title} (${count})`,
      ...lines.map((line) => `  ${line}`),
    ]),
  ]
}
