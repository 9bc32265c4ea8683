import type { Page } from 'playwright-core'

/** Milliseconds until a view shows another moment, measured in the page. */
export const moveTo = (page: Page, hash: string) =>
  page.evaluate<number>(`new Promise((resolve) => {
    const begun = performance.now()
    const before = location.hash
    location.hash = ${JSON.stringify(hash)}
    const look = () => {
      const content = document.querySelector('main .content')
      const isShown = location.hash !== before && content?.getAttribute('aria-busy') === 'false'
      if (isShown && performance.now() > begun + 1) resolve(performance.now() - begun)
      else requestAnimationFrame(look)
    }
    requestAnimationFrame(() => requestAnimationFrame(look))
  })`)
