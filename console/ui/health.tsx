/** Health as colour, shape and word. */
import type { ObjectHealth } from '../../src/past/explain/health.ts'

const words = { ok: 'OK', warning: 'Warning', problem: 'Problem' } as const
const shapes = { ok: '●', warning: '▲', problem: '✖' } as const

interface HealthProps {
  /** Undefined if the object has no conditions of this controller. */
  readonly health: ObjectHealth | undefined
  /** Without the word, which screen readers still say. */
  readonly isShort?: boolean
}

export function HealthMark({ health, isShort = false }: HealthProps) {
  if (health === undefined) {
    return (
      <span class="health none">
        <span aria-hidden="true">○</span> <span class={isShort ? 'unseen' : ''}>No status</span>
      </span>
    )
  }
  return (
    <span class={`health ${health}`}>
      <span aria-hidden="true">{shapes[health]}</span>{' '}
      <span class={isShort ? 'unseen' : ''}>{words[health]}</span>
    </span>
  )
}
