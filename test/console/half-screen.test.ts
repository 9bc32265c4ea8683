/** Half of a laptop's screen: the order of the focus, wide topologies, texts that are cut, and the theme. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeWithParts } from '../support/parts.ts'
import { type ConsolePage, exampleLog, incidentLog } from './browser.ts'
import { eventually, seriousFaults, startConsole } from './support.ts'

interface Box {
  readonly name: string
  readonly left: number
  readonly top: number
  readonly bottom: number
}

const views = ['#/', '#/objects', '#/timeline', '#/topology?as=list', '#/playground'] as const

describeWithParts(['chromium'], 'the console on half of a screen', () => {
  let console: ConsolePage
  beforeAll(async () => {
    console = await startConsole()
    await console.openLog('quickstart.jsonl', exampleLog('quickstart'))
  })
  afterAll(() => console?.close())

  /** Where the focus is; undefined if it has left the page. */
  const focused = () =>
    console.page.evaluate<Box | undefined>(`(() => {
      const element = document.activeElement
      if (element === document.body) return undefined
      const { left, top, bottom } = element.getBoundingClientRect()
      return { name: element.outerHTML.slice(0, 120), left, top, bottom }
    })()`)

  /** Everything that the tab key reaches from the beginning of the frame, in order. */
  async function focusOrder(within: string): Promise<Box[]> {
    const { page } = console
    const boxes: Box[] = []
    const first = page.locator(`${within} :is(a, button, input)`).first()
    await first.focus()
    const isInside = () =>
      page.evaluate<boolean>(`document.activeElement.closest(${JSON.stringify(within)}) !== null`)
    while (await isInside()) {
      const box = await focused()
      if (box !== undefined) boxes.push(box)
      await page.keyboard.press('Tab')
    }
    return boxes
  }

  /** Pairs of which the later one is above the earlier one, or to the left of it in the same row. */
  const misplaced = (boxes: readonly Box[]) =>
    boxes.flatMap((box, at) => {
      const before = boxes[at - 1]
      if (before === undefined) return []
      const isAbove = box.bottom <= before.top
      const isSameRow = box.top < before.bottom && before.top < box.bottom
      return isAbove || (isSameRow && box.left < before.left) ? [[before.name, box.name]] : []
    })

  it.each([640, 720, 1000, 1280])(
    'moves the focus as the page is read, at %d px',
    async (width) => {
      await console.page.setViewportSize({ width, height: 800 })
      for (const hash of ['#/@24', '#/objects'] as const) {
        await console.show(hash)
        const top = await focusOrder('.top')
        const views = await focusOrder('.views')
        expect(views.length).toBeGreaterThan(8)
        // Beside a wide view the navigation is a column of its own.
        expect(misplaced(width > 1_000 ? views : [...top, ...views])).toEqual([])
        expect(misplaced([...top, ...(await focusOrder('.time-bar'))])).toEqual([])
      }
    },
  )

  it('has one row of tools beside an opened log at 1280 px', async () => {
    await console.page.setViewportSize({ width: 1280, height: 800 })
    await console.show('#/')
    const box = await console.page.locator('.top').boundingBox()
    expect(box?.height).toBeLessThan(50)
  })

  it('says that a topology is wider than the view, and scrolls it with keys and the pointer', async () => {
    const { page } = console
    await page.setViewportSize({ width: 640, height: 800 })
    await console.show('#/topology')
    const graph = page.locator('section.graph')
    await graph.waitFor()
    const left = () => graph.evaluate((element) => (element as { scrollLeft: number }).scrollLeft)
    const hint = page.getByText('The topology is wider than this view.')
    await hint.waitFor()
    await graph.focus()
    await page.keyboard.press('ArrowRight')
    await eventually(left).toBeGreaterThan(0)
    await page.keyboard.press('ArrowLeft')
    await eventually(left).toBe(0)
    await graph.hover()
    await page.mouse.wheel(200, 0)
    await eventually(left).toBeGreaterThan(0)
    expect(await seriousFaults(console)).toEqual([])
    await page.setViewportSize({ width: 1900, height: 800 })
    await hint.waitFor({ state: 'detached' })
  })

  it('moves the focus through the columns of a topology from left to right', async () => {
    const { page } = console
    await page.setViewportSize({ width: 1900, height: 800 })
    await console.show('#/topology')
    await page.locator('.node').first().waitFor()
    const boxes = await focusOrder('.graph svg')
    expect(boxes.length).toBe(10)
    const sorted = boxes.toSorted((a, b) => a.left - b.left || a.top - b.top)
    expect(boxes.map(({ name }) => name)).toEqual(sorted.map(({ name }) => name))
  })

  it.each([640, 720])('has the whole text of everything that is cut, at %d px', async (width) => {
    const { page } = console
    await page.setViewportSize({ width, height: 800 })
    await console.openLog('incident.jsonl', await incidentLog())
    const cut: string[] = []
    let checked = 0
    for (const hash of views) {
      await console.show(hash)
      const found = await page.evaluate<{ count: number; cut: string[] }>(`(() => {
        const all = [...document.querySelectorAll('body *')].filter((element) => {
          const { overflowX, display } = getComputedStyle(element)
          return overflowX === 'hidden' && display !== 'none' && !element.matches('.unseen, .skip')
        })
        const isCut = (element) => element.scrollWidth > element.clientWidth
        const hasTitle = (element) => element.title.includes(element.textContent.trim())
        return {
          count: all.length,
          cut: all.filter((one) => isCut(one) && !hasTitle(one)).map((one) => one.outerHTML),
        }
      })()`)
      checked += found.count
      cut.push(...found.cut)
    }
    expect(checked).toBeGreaterThan(10)
    expect(cut).toEqual([])
    await console.openLog('quickstart.jsonl', exampleLog('quickstart'))
  })

  it('names the theme in force, and what the button does', async () => {
    const { page } = console
    await page.setViewportSize({ width: 640, height: 800 })
    const button = page.locator('.tools button[title*=theme]')
    const texts = async () => [await button.textContent(), await button.getAttribute('title')]
    const scheme = () => page.evaluate('getComputedStyle(document.documentElement).colorScheme')
    await page.emulateMedia({ colorScheme: 'dark' })
    await eventually(texts).toEqual(['auto: dark', 'Switch to the light theme'])
    await page.emulateMedia({ colorScheme: 'light' })
    await eventually(texts).toEqual(['auto: light', 'Switch to the light theme'])
    await button.click()
    await eventually(texts).toEqual(['theme: light', 'Switch to the dark theme'])
    expect(await scheme()).toBe('light')
    await button.click()
    const toSystem = 'Switch to the theme of the system, now light'
    await eventually(texts).toEqual(['theme: dark', toSystem])
    expect(await scheme()).toBe('dark')
    expect(await seriousFaults(console)).toEqual([])
    await button.click()
    await eventually(texts).toEqual(['auto: light', 'Switch to the light theme'])
  })
})
