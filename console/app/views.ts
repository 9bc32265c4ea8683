/** All views. A view is one line here, and a folder in `views/`. */
import type { ComponentType } from 'preact'
import { Diff } from '../views/diff/view.tsx'
import { Models } from '../views/models/view.tsx'
import { ObjectPage } from '../views/object/view.tsx'
import { Objects } from '../views/objects/view.tsx'
import { Overview } from '../views/overview/view.tsx'
import { RequestPage } from '../views/requests/request.tsx'
import { Requests } from '../views/requests/view.tsx'
import { Event } from '../views/timeline/event.tsx'
import { Timeline } from '../views/timeline/view.tsx'
import { Tools } from '../views/tools/view.tsx'
import { Topology } from '../views/topology/view.tsx'
import { Try } from '../views/try/view.tsx'
import { later } from './later.tsx'

interface ViewEntry {
  /** First segment of its URLs. */
  readonly path: string
  readonly title: string
  readonly View: ComponentType
  /** Whether the navigation lists it; others are reached by links. */
  readonly isListed: boolean
  /** Whether it shows a log; others work without one. */
  readonly needsLog: boolean
}

export const views: readonly ViewEntry[] = [
  { path: '', title: 'Overview', View: Overview, isListed: true, needsLog: true },
  { path: 'topology', title: 'Topology', View: Topology, isListed: true, needsLog: true },
  { path: 'objects', title: 'Objects', View: Objects, isListed: true, needsLog: true },
  { path: 'object', title: 'Object', View: ObjectPage, isListed: false, needsLog: true },
  { path: 'timeline', title: 'Timeline', View: Timeline, isListed: true, needsLog: true },
  { path: 'event', title: 'Event', View: Event, isListed: false, needsLog: true },
  { path: 'diff', title: 'Difference', View: Diff, isListed: false, needsLog: true },
  { path: 'requests', title: 'Requests', View: Requests, isListed: true, needsLog: false },
  { path: 'request', title: 'Request', View: RequestPage, isListed: false, needsLog: false },
  { path: 'try', title: 'Try', View: Try, isListed: true, needsLog: false },
  { path: 'models', title: 'Models', View: Models, isListed: true, needsLog: false },
  { path: 'tools', title: 'Tools', View: Tools, isListed: true, needsLog: false },
  {
    path: 'playground',
    title: 'Playground',
    View: later(async () => (await import('../views/playground/view.tsx')).Playground),
    isListed: true,
    needsLog: false,
  },
]
