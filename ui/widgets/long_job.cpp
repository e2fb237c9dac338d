// A short job blocks for a moment. During a longer one the window paints itself, and no key or click reaches it.
// SPDX-License-Identifier: Apache-2.0
#include "ui/widgets/long_job.h"

#include <QCoreApplication>
#include <QEventLoop>
#include <QProgressDialog>
#include <QSemaphore>
#include <QThreadPool>
#include <QTimer>

namespace fuseline::ui {

namespace {

constexpr int kUnnoticedMs = 50;
constexpr int kPatienceMs = 300;

struct Waiting {
  QSemaphore done;
  QEventLoop* loop = nullptr;  // of the window's thread, which alone touches it
};

std::shared_ptr<Waiting> begin(std::function<void()> job) {
  auto waiting = std::make_shared<Waiting>();
  QThreadPool::globalInstance()->start([waiting, job = std::move(job)] {
    job();
    waiting->done.release();
    const auto wake = [waiting] {
      if (waiting->loop) waiting->loop->quit();
    };
    QMetaObject::invokeMethod(QCoreApplication::instance(), wake, Qt::QueuedConnection);
  });
  return waiting;
}

/// Clicks and keys of this time arrive afterwards.
void waitPatiently(QEventLoop& loop) {
  QTimer::singleShot(kPatienceMs - kUnnoticedMs, &loop, &QEventLoop::quit);
  loop.exec(QEventLoop::ExcludeUserInputEvents);
}

void offerToCancel(QEventLoop& loop, QWidget& window, const QString& title) {
  QProgressDialog dialog(title, QCoreApplication::translate("Fuseline", "Cancel"), 0, 0, &window);
  dialog.setWindowTitle(QCoreApplication::applicationName());
  dialog.setWindowModality(Qt::WindowModal);
  dialog.setMinimumDuration(0);
  QObject::connect(&dialog, &QProgressDialog::canceled, &loop, &QEventLoop::quit);
  dialog.show();
  loop.exec();
}

}  // namespace

bool isDoneUnlessCanceled(QWidget& window, const QString& title, std::function<void()> job) {
  const std::shared_ptr<Waiting> waiting = begin(std::move(job));
  if (waiting->done.tryAcquire(1, kUnnoticedMs)) return true;
  QEventLoop loop;
  waiting->loop = &loop;
  waitPatiently(loop);
  bool isDone = waiting->done.tryAcquire();
  if (!isDone) {
    offerToCancel(loop, window, title);
    isDone = waiting->done.tryAcquire();
  }
  waiting->loop = nullptr;
  return isDone;
}

}  // namespace fuseline::ui
