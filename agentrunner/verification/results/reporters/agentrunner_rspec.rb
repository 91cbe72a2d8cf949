# Loaded by RSpec (`--require`), beside its formatters: a JSON object a line. It must never fail.
begin
  require 'json'
  require 'securerandom'

  class AgentRunnerListener
    EVENTS = %i[start example_started example_passed example_failed example_pending message dump_summary close].freeze
    PLACE = File.dirname(File.dirname(File.expand_path(__FILE__)))

    def initialize
      stamp = format('%020d-%d-%s', (Time.now.to_f * 1_000_000).to_i, Process.pid, SecureRandom.hex(4))
      @file = File.open(File.join(PLACE, "rspec-#{stamp}.jsonl"), File::WRONLY | File::CREAT | File::EXCL, 0o644)
      @file.sync = true
      @pid = Process.pid
      @ended = false
      write(k: 'start', tool: 'rspec', cwd: Dir.pwd)
      hide
    end

    def start(_) end

    def example_started(notice)
      write(k: 'begin', n: name(notice.example), f: file(notice.example))
    end

    def example_passed(notice)
      result(notice.example, 'passed')
    end

    def example_failed(notice)
      error = notice.example.execution_result.exception
      own = File.expand_path(file(notice.example))
      place = error && Array(error.backtrace).find { |frame| File.expand_path(frame[/\A[^:]+/].to_s) == own }
      at = place ? "\n    at #{File.basename(place[/\A.*?:\d+/])}" : ''
      result(notice.example, 'failed', error ? "#{error.class}: #{error.message}"[0, 1900] + at : '')
    end

    def example_pending(notice)
      run = notice.example.execution_result
      skipped = run.respond_to?(:example_skipped?) ? run.example_skipped? : true
      result(notice.example, skipped ? 'skipped' : 'xfailed')
    end

    def message(notice)
      found = notice.message.to_s[/An error occurred while loading (\S+?)\.?(?: - Did you mean\?)?$/, 1]
      return unless found
      path = found.sub(%r{\A\./}, '')
      write(k: 'lost', n: path)
      write(k: 'test', n: path, o: 'error', f: path, m: notice.message.to_s[0, 2000])
    end

    def dump_summary(notice)
      outside = notice.respond_to?(:errors_outside_of_examples_count) ? notice.errors_outside_of_examples_count : 0
      cut = outside > 0 || (RSpec.world.respond_to?(:wants_to_quit) && RSpec.world.wants_to_quit)
      cut ||= notice.example_count < RSpec.world.example_count
      finish(cut)
    rescue StandardError
      finish(true)
    end

    def close(_)
      finish(true)
    end

    private

    def finish(cut)
      return if @ended
      @ended = true
      write(k: 'end', cut: cut ? true : false)
    end

    def result(example, outcome, message = '')
      line = example.metadata[:line_number]
      write(k: 'test', n: name(example), o: outcome, f: file(example), l: line, m: message[0, 2000])
    end

    def file(example)
      path = example.metadata[:rerun_file_path] || example.metadata[:file_path]
      path.to_s.sub(%r{\A\./}, '')
    end

    def name(example)
      "#{file(example)} > #{example.full_description}"
    end

    def write(event)
      return unless Process.pid == @pid
      text = JSON.generate(event.map { |key, value| [key, clean(value)] }.to_h)
      @file.write("#{text}\n")
    rescue StandardError
      nil
    end

    def clean(value)
      value.is_a?(String) ? value.encode('UTF-8', invalid: :replace, undef: :replace).scrub('?') : value
    end

    def hide
      # Processes that a session starts are none of ours.
      rest = ENV['SPEC_OPTS'].to_s.sub(/\s*--require\s+\S*agentrunner_rspec\S*/, '').strip
      rest.empty? ? ENV.delete('SPEC_OPTS') : ENV['SPEC_OPTS'] = rest
    end
  end

  RSpec.configuration.formatter_loader.reporter.register_listener(
    AgentRunnerListener.new, *AgentRunnerListener::EVENTS
  )
rescue StandardError, LoadError, NotImplementedError
  nil
end
