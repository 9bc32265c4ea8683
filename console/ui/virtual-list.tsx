/** A long list of which only the visible rows are in the page. Rows have one height. */
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
} from '@tanstack/virtual-core'
import type { ComponentChildren } from 'preact'
import { useEffect, useReducer, useRef } from 'preact/hooks'

const overscan = 10

interface VirtualListProps {
  readonly label: string
  readonly count: number
  readonly rowHeight: number
  /** Index of the chosen row, which is scrolled into view when it changes; -1 if none is. */
  readonly chosen?: number
  row(index: number): ComponentChildren
  /** Called with the range of rows in the page. */
  onRange?(first: number, last: number): void
  /** Called with the index of a row that the reader opens. */
  onOpen?(index: number): void
}

export function VirtualList(props: VirtualListProps) {
  const { label, count, rowHeight, chosen = -1, row, onRange, onOpen } = props
  const box = useRef<HTMLDivElement>(null)
  const [, render] = useReducer((n: number) => n + 1, 0)
  const list = useRef<Virtualizer<HTMLDivElement, HTMLDivElement>>(undefined)
  list.current ??= new Virtualizer<HTMLDivElement, HTMLDivElement>({
    count,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan,
    scrollToFn: elementScroll,
    observeElementOffset,
    observeElementRect,
    onChange: () => render(undefined),
  })
  const virtual = list.current
  virtual.setOptions({ ...virtual.options, count })
  useEffect(() => virtual._didMount(), [virtual])
  useEffect(() => virtual._willUpdate())
  useEffect(() => {
    if (chosen >= 0 && chosen < count) virtual.scrollToIndex(chosen, { align: 'auto' })
  }, [chosen, count, virtual])
  const items = virtual.getVirtualItems()
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? -1]
  useEffect(() => onRange?.(first, last), [first, last, onRange])

  const onKeyDown = (event: KeyboardEvent) => {
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key]
    if (step === undefined || onOpen === undefined || count === 0) return
    event.preventDefault()
    onOpen(Math.min(count - 1, Math.max(0, chosen < 0 ? first : chosen + step)))
  }
  return (
    <div
      class="virtual-list"
      ref={box}
      role="table"
      aria-label={label}
      aria-rowcount={count}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the list scrolls and has keys for its rows.
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      <div role="rowgroup" style={{ height: `${virtual.getTotalSize()}px` }}>
        {items.map(({ index, start }) => (
          <div
            key={index}
            role="row"
            tabIndex={-1}
            class={index === chosen ? 'row chosen' : 'row'}
            aria-rowindex={index + 1}
            style={{ transform: `translateY(${start}px)`, height: `${rowHeight}px` }}
          >
            {row(index)}
          </div>
        ))}
      </div>
    </div>
  )
}
