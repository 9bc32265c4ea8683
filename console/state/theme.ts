/** Light and dark colours: those of the system, unless the reader chooses. */
import { computed, effect, signal } from '@preact/signals'

const key = 'sluice-console-theme'
const themes = ['system', 'light', 'dark'] as const
type Theme = (typeof themes)[number]

const stored = globalThis.localStorage?.getItem(key)
const theme = signal<Theme>(themes.find((one) => one === stored) ?? 'system')

const darkSystem = globalThis.matchMedia?.('(prefers-color-scheme: dark)')
const isSystemDark = signal(darkSystem?.matches === true)
darkSystem?.addEventListener('change', ({ matches }) => {
  isSystemDark.value = matches
})

/** The theme in force, and what `nextTheme` does. */
export const themeTexts = computed(() => {
  const system = isSystemDark.value ? 'dark' : 'light'
  const next = afterTheme()
  return {
    inForce: theme.value === 'system' ? `auto: ${system}` : `theme: ${theme.value}`,
    action: `Switch to ${next === 'system' ? `the theme of the system, now ${system}` : `the ${next} theme`}`,
  }
})

const afterTheme = (): Theme =>
  themes[(themes.indexOf(theme.value) + 1) % themes.length] ?? 'system'

export function nextTheme(): void {
  theme.value = afterTheme()
  localStorage.setItem(key, theme.value)
}

effect(() => {
  document.documentElement.dataset.theme = theme.value
})
