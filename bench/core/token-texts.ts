/** Texts to count tokens of: slices that no candidate has seen before, one for each round. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const modules = join(import.meta.dirname, '..', '..', 'node_modules')

/** Files of installed packages, one after the other; each package's pinned version makes them the same. */
const read = (...patterns: string[]) =>
  patterns
    .flatMap((pattern) => globSync(pattern, { cwd: modules }).sort())
    .map((file) => readFileSync(join(modules, file), 'utf8'))
    .join('\n')

/** Numbers below a bound, the same ones in every run. */
function sequence(seed: number): (bound: number) => number {
  let state = seed
  return (bound) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % bound
  }
}

/** The prose in the comments of type declarations, no line twice, without their examples. */
function english(): string {
  const lines = read(
    '@types/node/**/*.d.ts',
    '*/{lib,dist,types,esm}/**/*.d.ts',
    '@*/*/dist/**/*.d.ts',
  )
    .split('\n')
    .map((line) => /^ *\* ([A-Za-z(`][ -~]*[^;{}(,])$/.exec(line)?.[1])
  return [...new Set(lines)].filter((line) => line !== undefined).join('\n')
}

const code = (): string =>
  read(
    'undici/lib/**/*.js',
    'yaml/dist/**/*.js',
    'fast-check/lib/**/*.js',
    'xstate/dist/*.esm.js',
    'zod/v4/**/*.js',
  )

const hanWords =
  '我们 他们 你们 自己 这个 那个 什么 怎么 为什么 因为 所以 但是 如果 虽然 已经 正在 可以 应该 需要 希望 ' +
  '的 了 在 是 和 与 或 不 很 都 也 就 还 从 到 对 把 被 让 给 今天 明天 昨天 上午 下午 晚上 去年 今年 时间 ' +
  '公司 项目 系统 数据 网络 服务器 程序 代码 接口 用户 客户 产品 市场 价格 合同 报告 会议 问题 方案 计划 结果 ' +
  '学习 工作 研究 开发 测试 部署 设计 分析 管理 使用 提高 减少 增加 改变 选择 决定 开始 结束 完成 继续 讨论 ' +
  '老师 学生 医生 朋友 孩子 父母 城市 农村 学校 医院 银行 图书馆 火车站 机场 道路 河流 山脉 天气 春天 秋天 ' +
  '美丽 重要 复杂 简单 安全 快速 稳定 便宜 昂贵 新 旧 大 小 多 少 好 高兴 悲伤 认真 努力 一个 两次 三天 许多 ' +
  '经济 社会 文化 历史 科学 技术 政府 法律 教育 环境 能源 人工智能 语言模型 请求 响应 令牌 计费 缓存 延迟 错误'
const hanStops = ['，', '，', '。', '。', '；', '？', '：', '、', '！\n', '。\n']

/** Chinese clauses of 3 to 12 words. */
function chinese(length: number): string {
  const next = sequence(7)
  const words = hanWords.split(' ')
  const parts: string[] = []
  for (let size = 0; size < length; ) {
    const clause = Array.from({ length: 3 + next(10) }, () => words[next(words.length)]).join('')
    parts.push(clause, hanStops[next(hanStops.length)] ?? '')
    size += clause.length + 1
  }
  return parts.join('')
}

/** Short messages full of emoji, alone and in rows, with skin tones and joiners. */
function emoji(length: number): string {
  const next = sequence(11)
  const all = Array.from({ length: 0x20000 }, (_, point) => point)
    .filter((point) => point > 0x2000 && /\p{Emoji_Presentation}/u.test(pointText(point)))
    .map(pointText)
  const words = ['ok', ' thanks', ' great', ' see you', ' lol', '!', ' love it', '\n', ' haha']
  const parts: string[] = []
  for (let size = 0; size < length; ) {
    const row = Array.from({ length: 1 + next(6) }, () => all[next(all.length)] ?? '')
    if (next(4) === 0) row.push('👍🏽', '👩‍💻', '❤️')
    const text = row.join('') + words[next(words.length)]
    parts.push(text)
    size += text.length
  }
  return parts.join('')
}

const pointText = (point: number) => String.fromCodePoint(point)

/** Cuts a text into `count` slices of the same length, each decoded as a text of its own. */
function slices(text: string, count: number, length: number): string[] {
  if (text.length < count * length) throw new Error(`a text has only ${text.length} characters`)
  return Array.from({ length: count }, (_, i) =>
    Buffer.from(text.slice(i * length, (i + 1) * length)).toString(),
  )
}

/** For each kind of text, `count` slices of `length` characters. */
export function sliceTexts(count: number, length: number) {
  return {
    english: slices(english(), count, length),
    code: slices(code(), count, length),
    chinese: slices(chinese(count * length), count, length),
    emoji: slices(emoji(count * length), count, length),
  }
}
