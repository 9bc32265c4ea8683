import { useEffect, useRef } from 'preact/hooks'
import { go, place } from '../../state/location.ts'
import { log } from '../../state/worker-client.ts'
import type { Answer } from '../../worker/protocol.ts'

const height = 40

/** How many events there are in each part of the log; parts that changed a status stand out. */
export function Density({ density }: Pick<Answer<'timeline'>, 'density'>) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const { first, last } = log.value
  const at = place.value.position ?? last
  const columns = density.counts.length
  useEffect(() => {
    const { current } = canvas
    const context = current?.getContext('2d')
    if (!current || !context) return
    const style = getComputedStyle(current)
    const most = density.counts.reduce((a, b) => Math.max(a, b), 1)
    context.clearRect(0, 0, columns, height)
    density.counts.forEach((count, column) => {
      if (count === 0) return
      const changed = (density.changed[column] ?? 0) > 0
      context.fillStyle = changed ? style.color : style.borderTopColor
      const size = Math.max(3, (count / most) * height)
      context.fillRect(column, height - size, 1, size)
    })
    const now = Math.floor(((at - first) * columns) / Math.max(1, last - first + 1))
    context.fillStyle = style.outlineColor
    context.fillRect(now, 0, 1, height)
  }, [density, at, first, last, columns])
  const onClick = ({ offsetX, currentTarget }: MouseEvent) => {
    const share = offsetX / (currentTarget as HTMLCanvasElement).clientWidth
    go({ position: Math.round(first + share * (last - first)) })
  }
  return (
    <canvas
      class="density"
      ref={canvas}
      width={columns}
      height={height}
      role="img"
      aria-label="Events over the log; blue parts changed a status"
      onClick={onClick}
    />
  )
}
