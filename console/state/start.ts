/** Chooses the source of events: the process that serves this page, or files that the reader opens. */
import { signal } from '@preact/signals'
import { onNewKey, takeKey } from '../source/server.ts'
import { connect } from './served.ts'
import { open } from './worker-client.ts'

/** Whether a process serves this page, and follows its own log. */
export const isServed = signal(false)

export function startSource(): void {
  onNewKey(openServed)
  openServed()
}

function openServed(): void {
  const key = takeKey()
  if (key === undefined) return
  isServed.value = true
  open({ from: 'server', key })
  connect(key)
}

export const openFile = (file: File): Promise<void> => open({ from: 'file', file, name: file.name })
