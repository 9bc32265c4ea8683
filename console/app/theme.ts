/** Light and dark colours: those of the system, unless the reader chooses. */
import { effect, signal } from '@preact/signals'

const key = 'sluice-console-theme'
const themes = ['auto', 'light', 'dark'] as const
type Theme = (typeof themes)[number]

const stored = globalThis.localStorage?.getItem(key)
export const theme = signal<Theme>(themes.find((one) => one === stored) ?? 'auto')

export function nextTheme(): void {
  theme.value = themes[(themes.indexOf(theme.value) + 1) % themes.length] ?? 'auto'
  localStorage.setItem(key, theme.value)
}

effect(() => {
  document.documentElement.dataset.theme = theme.value
})
