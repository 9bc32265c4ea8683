/** All views. A view is one line here, and a folder in `views/`. */
import type { ComponentType } from 'preact'
import { Diff } from '../views/diff/view.tsx'
import { ObjectPage } from '../views/object/view.tsx'
import { Objects } from '../views/objects/view.tsx'
import { Overview } from '../views/overview/view.tsx'
import { RequestPage } from '../views/requests/request.tsx'
import { Requests } from '../views/requests/view.tsx'
import { Event } from '../views/timeline/event.tsx'
import { Timeline } from '../views/timeline/view.tsx'
import { later } from './later.tsx'

/** The groups of the navigation, in order. */
export const groups = [
  'Now',
  'Past',
  'Try',
  'Models & money',
  'Tools & guards',
  'Configuration',
] as const

interface ViewEntry {
  /** First segment of its URLs. */
  readonly path: string
  readonly title: string
  readonly View: ComponentType
  /** Group of the navigation in which it is listed; views without one are reached by links. */
  readonly group?: (typeof groups)[number]
  /** Whether it shows a log; others work without one. */
  readonly needsLog: boolean
  /** Whether it has no heading of its own, so that the frame gives it one for screen readers. */
  readonly needsHeading?: true
  /** Whether only people who may act find it in the navigation. */
  readonly needsActions?: true
}

export const views: readonly ViewEntry[] = [
  { path: '', title: 'Overview', View: Overview, group: 'Now', needsLog: true, needsHeading: true },
  {
    path: 'topology',
    title: 'Topology',
    View: later(async () => (await import('../views/topology/view.tsx')).Topology),
    group: 'Now',
    needsLog: true,
    needsHeading: true,
  },
  {
    path: 'objects',
    title: 'Objects',
    View: Objects,
    group: 'Configuration',
    needsLog: true,
    needsHeading: true,
  },
  { path: 'object', title: 'Object', View: ObjectPage, needsLog: true },
  {
    path: 'timeline',
    title: 'Timeline',
    View: Timeline,
    group: 'Past',
    needsLog: true,
    needsHeading: true,
  },
  { path: 'event', title: 'Event', View: Event, needsLog: true },
  { path: 'diff', title: 'Difference', View: Diff, needsLog: true },
  {
    path: 'held',
    title: 'Roll back & hold',
    View: later(async () => (await import('../views/held/view.tsx')).HeldPage),
    group: 'Past',
    needsActions: true,
    needsLog: true,
  },
  {
    path: 'requests',
    title: 'Requests',
    View: Requests,
    group: 'Now',
    needsLog: false,
    needsHeading: true,
  },
  { path: 'request', title: 'Request', View: RequestPage, needsLog: false },
  {
    path: 'try',
    title: 'Try',
    View: later(async () => (await import('../views/try/view.tsx')).Try),
    group: 'Try',
    needsLog: false,
  },
  {
    path: 'models',
    title: 'Models & money',
    View: later(async () => (await import('../views/models/view.tsx')).Models),
    group: 'Models & money',
    needsLog: false,
  },
  {
    path: 'keys',
    title: 'Keys',
    View: later(async () => (await import('../views/keys/view.tsx')).Keys),
    group: 'Models & money',
    needsLog: true,
  },
  {
    path: 'tools',
    title: 'Tools',
    View: later(async () => (await import('../views/tools/view.tsx')).Tools),
    group: 'Tools & guards',
    needsLog: false,
  },
  {
    path: 'guards',
    title: 'Guards',
    View: later(async () => (await import('../views/guards/view.tsx')).Guards),
    group: 'Tools & guards',
    needsLog: true,
  },
  {
    path: 'playground',
    title: 'Playground',
    View: later(async () => (await import('../views/playground/view.tsx')).Playground),
    group: 'Try',
    needsLog: false,
  },
]
