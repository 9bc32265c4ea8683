/** A view that needs the process that serves this page. */
import type { ComponentChildren } from 'preact'
import { type Offer, served } from '../state/served.ts'
import { isServed } from '../state/start.ts'
import { Empty, Loading } from './states.tsx'

interface OfferedProps {
  readonly offer: Offer
  /** What to do so that the view has something to show. */
  readonly otherwise: string
  readonly children: ComponentChildren
}

export function Offered({ offer, otherwise, children }: OfferedProps) {
  if (!isServed.value) return <Empty>This view needs a running process. {otherwise}</Empty>
  if (served.value === undefined) return <Loading what="what the process offers" />
  return served.value.about.offers[offer] ? children : <Empty>{otherwise}</Empty>
}
