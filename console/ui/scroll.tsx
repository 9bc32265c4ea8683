/** Content that may be wider than the page. Keyboards can scroll it, so it has the focus order of a field. */
import type { ComponentChildren } from 'preact'

interface ScrollProps {
  readonly label: string
  readonly children: ComponentChildren
}

export const Scroll = ({ label, children }: ScrollProps) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard.
  <section class="scroll" aria-label={label} tabIndex={0}>
    {children}
  </section>
)
